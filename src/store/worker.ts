import { backup } from "./backup.ts";
import { createEngineStore } from "./engine-store.ts";
import { type Engine, openWriter } from "./sqlite.ts";
import { toStorageError } from "./storage-error.ts";

/** What the main thread asks. Flat, and the arguments as one JSON text: Bun passes such messages on without walking them. */
export interface Call {
  id: number;
  /** `open`, `close`, `backup`, `next`, `leave`, `read:<report>`, or `<noun>.<method>` of the store. */
  method: string;
  /** A JSON array. */
  args: string;
  /** The caller's clock, epoch milliseconds: the only one that counts here. */
  now: number;
}

export interface Answer {
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
  const reports = new Map<number, AsyncIterator<Uint8Array>>();
  let nextReport = 1;

  const methods: Record<string, Method> = {
    open: (file) => {
      engine = openWriter(String(file));
      const store = createEngineStore(engine, () => now);
      for (const [noun, group] of Object.entries(store)) {
        if (typeof group === "function") methods[noun] = group;
        else for (const [name, method] of Object.entries(group)) methods[`${noun}.${name}`] = method as Method;
      }
    },
    close: () => engine?.close(),
    backup: (file, target) => backup(String(file), String(target)),
    read: (report, ...args) => {
      const slices = methods[String(report)]?.(...args) as AsyncIterable<Uint8Array>;
      const id = nextReport++;
      reports.set(id, slices[Symbol.asyncIterator]());
      return id;
    },
    next: async (id) => {
      const slice = await reports.get(Number(id))?.next();
      if (slice?.done === false) return slice.value;
      reports.delete(Number(id));
      return undefined;
    },
    leave: (id) => {
      reports.delete(Number(id));
    },
  };

  const answer = async ({ id, method, args, now: callersNow }: Call): Promise<void> => {
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
  self.addEventListener("message", ({ data }: MessageEvent<Call>) => {
    last = last.then(() => answer(data));
  });
}

serve();
