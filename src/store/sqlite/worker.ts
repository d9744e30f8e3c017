import { randomUUID } from "node:crypto";
import { createSqlStore } from "../sql-store.ts";
import { toStorageError } from "../storage-error.ts";
import type { RequestLogLimits } from "../request-log-store.ts";
import { StorageError } from "../store.ts";
import { createCallQueue, isUrgent } from "./call-queue.ts";
import { copyDatabase } from "./copy-database.ts";
import { openWriter, pagesPerCheckpoint, type WriterEngine } from "./engine.ts";
import { createJournalFold, type JournalFold } from "./journal.ts";

/**
 * A message to the Worker. Flat, with the arguments as one JSON string: Bun then passes it on without traversing it (1.4.5).
 * Remove the JSON when nested messages cost the same.
 */
export interface WorkerCall {
  id: number;
  /** `open`, `close`, `fold`, `checkpoint`, `backup`, `openReport`, `readSlice`, `closeReport`, or `<noun>.<method>` of the store. */
  method: string;
  /** A JSON array. */
  args: string;
  /** The caller's clock, epoch milliseconds; the Worker uses no other. */
  now: number;
}

export interface WorkerReply {
  id: number;
  /** JSON; undefined if there is no result. */
  value?: string | undefined;
  /** A slice of a report. */
  bytes?: Uint8Array;
  /** The message of a StorageError. */
  error?: string;
  isRefusal?: boolean;
}

/** What reads or writes counts; a noun stands for all its methods. The tables are complete for these. */
const concernedWithCounts: ReadonlySet<string> = new Set([
  "usage",
  "keys",
  "requests",
  "traffic",
  "reconciliation",
  "database",
  "limits",
  "openReport",
  "fold",
  "close",
]);

const needsFold = (method: string): boolean =>
  concernedWithCounts.has(method) || concernedWithCounts.has(method.slice(0, method.indexOf(".")));

/** A flush of one key writes eight pages; an argument that holds many rows, about one page for each 64 bytes of them. */
const pagesPerCall = 8;
const pagesPerRow = 3;
const bytesPerPage = 64;

type Method = (...args: unknown[]) => unknown;

declare const self: Worker;

/** The storage Worker: the only thread of this process that writes. It also runs the queries that take long. */
function serve(): void {
  let now = 0;
  let engine: WriterEngine | undefined;
  let journal: JournalFold | undefined;
  /** An estimate of the pages in the log that came from this thread. */
  let pages = 0;
  /** By random ids, so that a report of a crashed Worker does not continue with one of its successor. */
  const reports = new Map<string, AsyncIterator<Uint8Array>>();

  async function checkpoint(): Promise<void> {
    pages = 0;
    await engine?.checkpoint(() => methods["checkWritable"]?.());
  }

  async function foldBefore(method: string): Promise<void> {
    try {
      await journal?.fold();
    } catch (error) {
      // A flush that is recorded before those in the journal would hide them. Everything else goes on with older counts.
      if (method === "usage.add") throw error;
    }
    pages += (journal?.takeWritten() ?? 0) * pagesPerRow;
  }

  const methods: Record<string, Method> = {
    open: (file, limits) => {
      engine = openWriter(String(file));
      journal = createJournalFold(engine, () => now);
      const store = createSqlStore(engine, () => now, limits as RequestLogLimits);
      for (const [noun, part] of Object.entries(store)) {
        if (typeof part === "function") methods[noun] = part;
        else for (const [name, method] of Object.entries(part)) methods[`${noun}.${name}`] = method as Method;
      }
    },
    close: () => engine?.close(),
    checkpoint,
    fold: async () => {
      // A flush of nothing: the other connection writes, but prunes nothing.
      await methods["usage.add"]?.([]);
      return journal?.takeRefused();
    },
    backup: (file, target) => copyDatabase(String(file), String(target)),
    openReport: (method, ...args) => {
      const slices = methods[String(method)]?.(...args) as AsyncIterable<Uint8Array>;
      const id = randomUUID();
      reports.set(id, slices[Symbol.asyncIterator]());
      return id;
    },
    readSlice: async (id) => {
      const report = reports.get(String(id));
      if (report === undefined) throw new StorageError("the report is no longer open");
      const slice = await report.next();
      return slice.done === true ? undefined : slice.value;
    },
    closeReport: (id) => {
      reports.delete(String(id));
    },
  };

  const handle = async ({ id, method, args, now: callerNow }: WorkerCall): Promise<void> => {
    now = callerNow;
    try {
      if (needsFold(method)) await foldBefore(method);
      const result = await methods[method]?.(...(JSON.parse(args) as unknown[]).map((arg) => arg ?? undefined));
      if (result instanceof Uint8Array) self.postMessage({ id, bytes: result }, [result.buffer]);
      else self.postMessage({ id, value: JSON.stringify(result) });
    } catch (error) {
      const { message, isRefusal } = toStorageError(error);
      self.postMessage({ id, error: message, isRefusal });
    }
  };

  const queue = createCallQueue<WorkerCall>();
  let running = false;

  /** One call at a time: no other statement may run between those of a transaction. */
  async function runCalls(): Promise<void> {
    running = true;
    for (let call = queue.next(); call !== undefined; call = queue.next()) {
      await handle(call);
      pages += pagesPerCall + call.args.length / bytesPerPage;
      if (pages > pagesPerCheckpoint) await checkpoint().catch(() => {});
      // Lets messages in that arrived meanwhile, so that an urgent call among them goes first. Not needed without other work.
      if (!isUrgent(call) || !queue.isEmpty()) await new Promise(setImmediate);
    }
    running = false;
  }

  self.addEventListener("message", ({ data }: MessageEvent<WorkerCall>) => {
    queue.add(data);
    if (!running) void runCalls();
  });
}

serve();
