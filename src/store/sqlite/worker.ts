import { randomUUID } from "node:crypto";
import { backup } from "./backup.ts";
import type { Engine } from "../engine.ts";
import { createSqlStore } from "../sql-store.ts";
import { openWriter } from "./engine.ts";
import { toStorageError } from "../storage-error.ts";
import { StorageError } from "../store.ts";

/**
 * What the main thread asks. Flat, and the arguments as one JSON text: Bun passes such messages on without walking them.
 * Remove the JSON when nested messages cost the same (Bun 1.4.5).
 */
export interface WorkerCall {
  id: number;
  /** `open`, `close`, `backup`; `read`, `next` and `leave` for a report; or `<noun>.<method>` of the store. */
  method: string;
  /** A JSON array. */
  args: string;
  /** The caller's clock, epoch milliseconds: the only one that counts here. */
  now: number;
}

export interface WorkerReply {
  id: number;
  /** JSON; undefined where there is nothing to tell. */
  value?: string | undefined;
  /** A slice of a report. */
  bytes?: Uint8Array;
  error?: string;
}

type Method = (...args: unknown[]) => unknown;

declare const self: Worker;

/** The storage Worker: the one thread of this process that writes, and that reads what takes long. */
function serve(): void {
  let now = 0;
  let engine: Engine | undefined;
  /** By an id that no other Worker uses: a report does not go on in one that was started since. */
  const reports = new Map<string, AsyncIterator<Uint8Array>>();

  const methods: Record<string, Method> = {
    open: (file) => {
      engine = openWriter(String(file));
      const store = createSqlStore(engine, () => now);
      for (const [noun, group] of Object.entries(store)) {
        if (typeof group === "function") methods[noun] = group;
        else for (const [name, method] of Object.entries(group)) methods[`${noun}.${name}`] = method as Method;
      }
    },
    close: () => engine?.close(),
    backup: (file, target) => backup(String(file), String(target)),
    read: (report, ...args) => {
      const slices = methods[String(report)]?.(...args) as AsyncIterable<Uint8Array>;
      const id = randomUUID();
      reports.set(id, slices[Symbol.asyncIterator]());
      return id;
    },
    next: async (id) => {
      const report = reports.get(String(id));
      if (report === undefined) throw new StorageError("the report is no longer open");
      const slice = await report.next();
      return slice.done === true ? undefined : slice.value;
    },
    leave: (id) => {
      reports.delete(String(id));
    },
  };

  const answer = async ({ id, method, args, now: callersNow }: WorkerCall): Promise<void> => {
    now = callersNow;
    try {
      const result = await methods[method]?.(...(JSON.parse(args) as unknown[]).map((arg) => arg ?? undefined));
      if (result instanceof Uint8Array) self.postMessage({ id, bytes: result }, [result.buffer]);
      else self.postMessage({ id, value: JSON.stringify(result) });
    } catch (error) {
      self.postMessage({ id, error: toStorageError(error).message });
    }
  };

  // One call after the other: a transaction's statements await, and nothing may come between them.
  let last = Promise.resolve();
  self.addEventListener("message", ({ data }: MessageEvent<WorkerCall>) => {
    last = last.then(() => answer(data));
  });
}

serve();
