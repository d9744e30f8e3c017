import type { WallClock } from "../../time/clock.ts";
import type { Log } from "../../log/log.ts";
import { StorageError } from "../store.ts";
import type { WorkerReply, WorkerCall } from "./worker.ts";

const firstRestartMs = 50;
const slowestRestartMs = 2000;

export interface StorageWorker {
  /** @throws StorageError where the call failed, or the Worker stopped before it answered */
  call(method: string, ...args: unknown[]): Promise<unknown>;
  /** Ends the Worker; calls that are still open reject. */
  stop(): void;
}

/** In the binary the Worker is a further entry point of the bundle, and lies beside the program. */
const workerUrl = Bun.isStandaloneExecutable
  ? `${import.meta.dir}/store/sqlite/worker.js`
  : new URL("./worker.ts", import.meta.url).href;

interface PendingCall {
  resolve: (value: unknown) => void;
  reject: (error: StorageError) => void;
}

/** One Worker's life, without a second one. `onDeath` is told once, unless it was stopped. */
export function startWorker(clock: WallClock, onDeath: () => void = () => {}): StorageWorker {
  const worker = new Worker(workerUrl);
  const waiting = new Map<number, PendingCall>();
  let nextId = 1;
  let ended = false;

  const end = (reason: string): void => {
    ended = true;
    for (const { reject } of waiting.values()) reject(new StorageError(reason));
    waiting.clear();
    worker.terminate();
  };
  const died = (): void => {
    if (ended) return;
    end("the storage thread stopped unexpectedly; it is being started again");
    onDeath();
  };
  worker.addEventListener("error", died);
  worker.addEventListener("close", died);
  worker.addEventListener("message", ({ data }: MessageEvent<WorkerReply>) => {
    const caller = waiting.get(data.id);
    waiting.delete(data.id);
    if (data.error !== undefined) caller?.reject(new StorageError(data.error));
    else caller?.resolve(data.bytes ?? (data.value === undefined ? undefined : JSON.parse(data.value)));
  });

  return {
    call: (method, ...args) =>
      new Promise((resolve, reject) => {
        if (ended) {
          reject(new StorageError("the storage thread is not running"));
          return;
        }
        const id = nextId++;
        waiting.set(id, { resolve, reject });
        worker.postMessage({ id, method, args: JSON.stringify(args), now: clock() } satisfies WorkerCall);
      }),
    stop: () => end("the store was closed"),
  };
}

/**
 * A Worker that has the database open, and another one whenever it dies.
 * @throws StorageError where the database cannot be opened the first time
 */
export async function keepWorker(options: { file: string; clock: WallClock; log: Log }): Promise<StorageWorker> {
  const { file, clock, log } = options;
  let restartMs = firstRestartMs;
  let restart: Timer | undefined;
  let stopped = false;
  let current = await start();

  async function start(): Promise<StorageWorker> {
    let open = false;
    const worker = startWorker(clock, () => {
      if (open) restartSoon();
    });
    try {
      await worker.call("open", file);
      open = true;
      return worker;
    } catch (error) {
      worker.stop();
      throw error;
    }
  }

  function restartSoon(): void {
    if (stopped) return;
    log.error("The storage thread stopped and is started again", { inMs: restartMs });
    restart = setTimeout(() => void startAgain(), restartMs);
    restartMs = Math.min(restartMs * 2, slowestRestartMs);
  }

  async function startAgain(): Promise<void> {
    try {
      current = await start();
      restartMs = firstRestartMs;
      if (stopped) current.stop();
      else log.info("The storage thread runs again");
    } catch (error) {
      log.error("The storage thread could not open the database", { reason: (error as Error).message });
      restartSoon();
    }
  }

  return {
    call: (method, ...args) => current.call(method, ...args),
    stop: () => {
      stopped = true;
      clearTimeout(restart);
      current.stop();
    },
  };
}
