import type { Log } from "../../log/log.ts";
import type { WallClock } from "../../time/clock.ts";
import type { Retention } from "../retention.ts";
import { isLimited, maxWaitingCalls } from "./call-queue.ts";
import type { WorkerCall, WorkerReply } from "./worker.ts";
import { StorageError } from "../storage-error.ts";

const firstRestartMs = 50;
const maxRestartMs = 2000;

export interface StorageWorker {
  /** @throws StorageError if the call fails, or if the Worker stops before it replies */
  call: (method: string, ...args: unknown[]) => Promise<unknown>;
  /** Terminates the Worker; pending calls reject. */
  stop: () => void;
}

/** In the binary the Worker is a second entry point of the bundle. */
const workerUrl = Bun.isStandaloneExecutable
  ? `${import.meta.dir}/store/sqlite/worker.js`
  : new URL("./worker.ts", import.meta.url).href;

/** Starts one Worker. `onCrash` is called once if it ends without `stop`. */
export function startWorker(clock: WallClock, onCrash: () => void = () => {}): StorageWorker {
  const worker = new Worker(workerUrl);
  const pending = new Map<
    number,
    {
      limited: boolean;
      resolve: (value: unknown) => void;
      reject: (error: StorageError) => void;
    }
  >();
  let nextId = 1;
  /** How many of the pending calls are limited. */
  let waiting = 0;
  let ended = false;

  const end = (reason: string): void => {
    ended = true;
    for (const { reject } of pending.values()) reject(new StorageError(reason));
    pending.clear();
    worker.terminate();
  };
  const crashed = (): void => {
    if (ended) return;
    end("the storage thread stopped unexpectedly and is being restarted");
    onCrash();
  };
  worker.addEventListener("error", crashed);
  worker.addEventListener("close", crashed);
  worker.addEventListener("message", ({ data }: MessageEvent<WorkerReply>) => {
    const call = pending.get(data.id);
    pending.delete(data.id);
    if (call?.limited === true) waiting--;
    const { error, isFull = false } = data;
    if (error !== undefined) call?.reject(new StorageError(error, { isFull }));
    else call?.resolve(data.bytes ?? (data.value === undefined ? undefined : JSON.parse(data.value)));
  });

  return {
    call: (method, ...args) =>
      new Promise((resolve, reject) => {
        if (ended) {
          reject(new StorageError("the storage thread is not running"));
          return;
        }
        const limited = isLimited(method);
        if (limited && waiting === maxWaitingCalls) {
          reject(new StorageError("too many calls wait for the database"));
          return;
        }
        if (limited) waiting++;
        const id = nextId++;
        pending.set(id, { limited, resolve, reject });
        worker.postMessage({ id, method, args: JSON.stringify(args), now: clock() } satisfies WorkerCall);
      }),
    stop: () => end("the store is closed"),
  };
}

/** Starts a Worker for some calls, which end if the signal aborts. The caller's thread goes on. */
export async function withWorker<T>(
  clock: WallClock,
  signal: AbortSignal | undefined,
  work: (call: StorageWorker["call"]) => Promise<T>,
): Promise<T> {
  const worker = startWorker(clock);
  signal?.addEventListener("abort", worker.stop);
  try {
    return await work(worker.call);
  } finally {
    signal?.removeEventListener("abort", worker.stop);
    worker.stop();
  }
}

/**
 * Starts a Worker that opens the database, and a new one whenever it crashes.
 * @throws StorageError if the first one cannot open the database
 */
export async function startRestartingWorker(options: {
  file: string;
  retention: Retention;
  clock: WallClock;
  log: Log;
}): Promise<StorageWorker> {
  const { file, retention, clock, log } = options;
  let restartMs = firstRestartMs;
  let restartTimer: Timer | undefined;
  let stopped = false;
  let current = await start();

  async function start(): Promise<StorageWorker> {
    let open = false;
    const worker = startWorker(clock, () => {
      if (open) scheduleRestart();
    });
    try {
      await worker.call("open", file, retention);
      open = true;
      return worker;
    } catch (error) {
      worker.stop();
      throw error;
    }
  }

  function scheduleRestart(): void {
    if (stopped) return;
    log.error("Storage thread stopped; restarting it", { inMs: restartMs });
    restartTimer = setTimeout(() => void restart(), restartMs);
    restartMs = Math.min(restartMs * 2, maxRestartMs);
  }

  async function restart(): Promise<void> {
    try {
      current = await start();
      restartMs = firstRestartMs;
      if (stopped) current.stop();
      else log.info("Storage thread restarted");
    } catch (error) {
      log.error("Storage thread could not open the database", { reason: (error as Error).message });
      scheduleRestart();
    }
  }

  return {
    call: (method, ...args) => current.call(method, ...args),
    stop: () => {
      stopped = true;
      clearTimeout(restartTimer);
      current.stop();
    },
  };
}
