import { randomUUID } from "node:crypto";
import { createSqlStore } from "../sql-store.ts";
import { toStorageError } from "../storage-error.ts";
import type { Retention } from "../retention.ts";
import { StorageError } from "../store.ts";
import { createCallQueue, isUrgent } from "./call-queue.ts";
import { copyDatabase } from "./copy-database.ts";
import { openWriter, type WriterEngine } from "./engine.ts";
import { inspectDatabase } from "./inspect-database.ts";
import { type KeysVersion, openKeysVersion } from "./keys-version.ts";
import { createFold, type Fold, type RefusedCounts } from "./staged-flushes.ts";
import { releaseSpaceWhenIdle } from "./release-space.ts";

/**
 * A message to the Worker. Flat, with the arguments as one JSON string: Bun then passes it on without traversing it (1.4.5).
 * Remove the JSON when nested messages cost the same.
 */
export interface WorkerCall {
  id: number;
  /**
   * `open`, `close`, `fold`, `copyLog`, `checkpoint`, `backup`, `copyBackup`, `inspect`, `openReport`, `readSlice`,
   * `closeReport`, or `<noun>.<method>` of the store.
   */
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

/** The caller of these runs the checkpoints that are due after them. */
const leadsToCheckpoint: ReadonlySet<string> = new Set(["fold", "copyLog", "checkpoint"]);

/** What `fold` returns. */
export interface Folded {
  refused: RefusedCounts[];
  /** The caller runs it, because its own commits have to pause for it. */
  isCheckpointDue: boolean;
}

type Method = (...args: unknown[]) => unknown;

declare const self: Worker;

/** The storage Worker: the only thread of this process that writes. It also runs the queries that take long. */
function serve(): void {
  let now = 0;
  /** Whether a call is being handled; a transaction may be open then. */
  let running = false;
  let engine: WriterEngine | undefined;
  let journal: Fold | undefined;
  /** By random ids, so that a report of a crashed Worker does not continue with one of its successor. */
  const reports = new Map<string, AsyncIterator<Uint8Array>>();

  async function checkpoint(): Promise<void> {
    await engine?.checkpoint(() => methods["checkWritable"]?.());
  }

  async function foldBefore(method: string): Promise<void> {
    try {
      await journal?.fold();
    } catch (error) {
      // A flush that is recorded before those in the journal would hide them. Everything else goes on with older counts.
      if (method === "usage.add") throw error;
    }
  }

  /** Before the caller gets its reply, so that the next request of any process sees the change. */
  function raiseAfter(method: string, generation: KeysVersion | undefined): void {
    const change = methods[method];
    methods[method] = async (...args) => {
      try {
        return await change?.(...args);
      } finally {
        generation?.raise();
      }
    };
  }

  const methods: Record<string, Method> = {
    open: (file, retention) => {
      engine = openWriter(String(file));
      journal = createFold(engine, () => now);
      releaseSpaceWhenIdle(releaseSpace);
      const store = createSqlStore(engine, () => now, retention as Retention);
      for (const [noun, part] of Object.entries(store)) {
        if (typeof part === "function") methods[noun] = part;
        else for (const [name, method] of Object.entries(part)) methods[`${noun}.${name}`] = method as Method;
      }
      const generation = openKeysVersion(String(file));
      for (const change of ["keys.update", "keys.rotate", "keys.delete"]) raiseAfter(change, generation);
    },
    close: () => engine?.close(),
    copyLog: () => engine?.copyLog(),
    checkpoint,
    fold: async (): Promise<Folded> => {
      // A flush of nothing: the other connection writes, but prunes nothing.
      await methods["usage.add"]?.([]);
      return { refused: journal?.takeRefused() ?? [], isCheckpointDue: engine?.isCheckpointDue() ?? false };
    },
    backup: (file, target) => copyDatabase(String(file), String(target), { isInUse: true }),
    copyBackup: (file, target) => copyDatabase(String(file), String(target), { isInUse: false }),
    inspect: (file, thoroughness) => inspectDatabase(String(file), thoroughness === "full" ? "full" : "quick"),
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

  /** One call at a time: no other statement may run between those of a transaction. */
  async function runCalls(): Promise<void> {
    running = true;
    for (let call = queue.next(); call !== undefined; call = queue.next()) {
      await handle(call);
      if (!leadsToCheckpoint.has(call.method) && engine?.isCheckpointDue() === true) await checkpoint().catch(() => {});
      // Lets messages in that arrived meanwhile, so that an urgent call among them goes first. Not needed without other work.
      if (!isUrgent(call) || !queue.isEmpty()) await new Promise(setImmediate);
    }
    running = false;
  }

  /** @returns whether there is more to release, or other work goes first */
  async function releaseSpace(): Promise<boolean> {
    if (running || engine === undefined) return running;
    running = true;
    try {
      const released = engine.releaseSpace();
      if (engine.isCheckpointDue()) await checkpoint();
      return released > 0;
    } finally {
      running = false;
      if (!queue.isEmpty()) void runCalls();
    }
  }

  self.addEventListener("message", ({ data }: MessageEvent<WorkerCall>) => {
    queue.add(data);
    if (!running) void runCalls();
  });
}

serve();
