import { randomUUID } from "node:crypto";
import type { WallClock } from "../../time/clock.ts";
import { createSqlStore } from "../sql-store.ts";
import { toStorageError, StorageError } from "../storage-error.ts";
import type { Retention } from "../retention.ts";
import { createCallQueue, isUrgent } from "./call-queue.ts";
import { copyDatabase } from "./copy-database.ts";
import { openWriter } from "./engine.ts";
import { inspectDatabase } from "./inspect-database.ts";
import { openKeysVersion } from "./keys-version.ts";
import { createFold } from "./staged-flushes.ts";
import type { RefusedUsage } from "../usage/batch.ts";

/**
 * A message to the Worker. Flat, with the arguments as one JSON string: Bun then passes it on without traversing it (1.4.5).
 * Remove the JSON when nested messages cost the same.
 */
export interface WorkerCall {
  id: number;
  /**
   * `open`, `methods`, `close`, `fold`, `copyLog`, `checkpoint`, `backup`, `copyBackup`, `inspect`, `openReport`, `readSlice`,
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
  isFull?: boolean;
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
const leadsToCheckpoint: ReadonlySet<string> = new Set(["fold", "maintain", "copyLog", "checkpoint"]);

/** What `fold` returns. */
export interface Folded {
  /** The caller runs it, because its own commits have to pause for it. */
  isCheckpointDue: boolean;
  refused: RefusedUsage[];
  /** Whether the staged flushes, or some of them, could not be added up; `usage.add` then fails too, and says why. */
  hasFailed: boolean;
}

/** What `maintain` returns. */
export interface Maintained extends Pick<Folded, "isCheckpointDue"> {
  hasMore: boolean;
}

type Method = (...args: unknown[]) => unknown;
type Methods = Record<string, Method>;

declare const self: Worker;

/** The storage Worker: the only thread of this process that folds, deletes and checkpoints. It also runs long queries. */
function runStorage(): void {
  let now = 0;
  /** Whether a call is being handled; a transaction may be open then. */
  let running = false;
  let database: OpenDatabase | undefined;
  const queue = createCallQueue<WorkerCall>();
  const methods: Methods = {
    open: (file, retention) => {
      database = openDatabase(String(file), retention as Retention, () => now);
      Object.assign(methods, database.methods, createReports(database.methods));
    },
    backup: (file, target) => copyDatabase(String(file), String(target), { isInUse: true }),
    copyBackup: (file, target) => copyDatabase(String(file), String(target), { isInUse: false }),
    inspect: (file, thoroughness) => inspectDatabase(String(file), thoroughness === "full" ? "full" : "quick"),
  };

  async function foldBefore(method: string): Promise<void> {
    try {
      await database?.fold();
    } catch (error) {
      // A flush that is recorded before the staged ones would hide them. Everything else goes on with older counts.
      if (method === "usage.add") throw error;
    }
  }

  async function handle({ id, method, args, now: callerNow }: WorkerCall): Promise<void> {
    now = callerNow;
    try {
      if (needsFold(method)) await foldBefore(method);
      const result = await methods[method]?.(...(JSON.parse(args) as unknown[]).map((arg) => arg ?? undefined));
      if (result instanceof Uint8Array) self.postMessage({ id, bytes: result }, [result.buffer]);
      else self.postMessage({ id, value: JSON.stringify(result) });
    } catch (error) {
      const { message, isFull } = toStorageError(error);
      self.postMessage({ id, error: message, isFull });
    }
  }

  /** One call at a time: no other statement may run between those of a transaction. */
  async function runCalls(): Promise<void> {
    running = true;
    for (let call = queue.next(); call !== undefined; call = queue.next()) {
      await handle(call);
      if (!leadsToCheckpoint.has(call.method)) await database?.checkpointIfDue();
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

interface OpenDatabase {
  /** Those of the store, by `<noun>.<method>`, and those of the file. */
  methods: Methods;
  fold(): Promise<void>;
  checkpointIfDue(): Promise<void>;
}

function openDatabase(file: string, retention: Retention, clock: WallClock): OpenDatabase {
  const engine = openWriter(file);
  const staged = createFold(engine, clock);
  const store = createSqlStore(engine, clock, retention);
  const maintain = withReleases(store.maintain, engine.releaseSpace);
  const checkpoint = (): Promise<void> => engine.checkpoint(store.checkWritable);
  let hasFailed = false;
  const methods: Methods = {};
  for (const [noun, part] of Object.entries(store)) {
    if (typeof part === "function") methods[noun] = part;
    else for (const [name, method] of Object.entries(part)) methods[`${noun}.${name}`] = method as Method;
  }
  const version = openKeysVersion(file);
  const ofSubjects = ["subjects.update", "subjects.delete", "signIns.begin", "signIns.leave", "signIns.endUnseen"];
  for (const name of ["keys.update", "keys.rotate", "keys.delete", ...ofSubjects])
    methods[name] = thenRaise(version, methods[name]);
  return {
    methods: {
      ...methods,
      methods: () => Object.keys(methods),
      maintain: async (): Promise<Maintained> => ({
        hasMore: await maintain(),
        isCheckpointDue: engine.isCheckpointDue(),
      }),
      // What the fold before it could not add.
      fold: (): Folded => ({ refused: staged.takeRefused(), hasFailed, isCheckpointDue: engine.isCheckpointDue() }),
      copyLog: engine.copyLog,
      checkpoint,
      close: engine.close,
    },
    async fold() {
      hasFailed = true;
      await staged.fold();
      hasFailed = false;
    },
    async checkpointIfDue() {
      try {
        if (engine.isCheckpointDue()) await checkpoint();
      } catch {
        // The call itself failed, or the next checkpoint does what this one could not.
      }
    },
  };
}

/** Before the caller gets its reply, so that the next request of any process sees the change. */
function thenRaise(version: Int32Array | undefined, change: Method | undefined): Method {
  return async (...args) => {
    try {
      return await change?.(...args);
    } finally {
      if (version !== undefined) Atomics.add(version, 0, 1);
    }
  };
}

/** Releases space once nothing more is to be deleted. A round of deletions does not begin anew before that ends. */
function withReleases(deleteSome: () => Promise<boolean>, releaseSpace: () => number): () => Promise<boolean> {
  let isReleasing = false;
  return async () => {
    if (!isReleasing && (await deleteSome())) return true;
    isReleasing = releaseSpace() > 0;
    return isReleasing;
  };
}

/**
 * A report of a year has thousands of slices. Without collections, Bun (1.4.5) keeps 30 MB more of what they leave. Beside an
 * idle program the largest report takes 28 MB at its peak with one in 10, and 32 with one in 50, which is a fifth faster.
 */
const slicesPerCollection = 10;

/** Reports are read slice by slice, each in a call of its own. */
function createReports(methods: Methods): Methods {
  /** By random ids, so that a report of a crashed Worker does not continue with one of its successor. */
  const reports = new Map<string, AsyncIterator<Uint8Array>>();
  let slices = 0;
  return {
    openReport: (method, ...args) => {
      const chunks = methods[String(method)]?.(...args) as AsyncIterable<Uint8Array>;
      const id = randomUUID();
      reports.set(id, chunks[Symbol.asyncIterator]());
      return id;
    },
    readSlice: async (id) => {
      const report = reports.get(String(id));
      if (report === undefined) throw new StorageError("the report is no longer open");
      if (++slices % slicesPerCollection === 0) Bun.gc(true);
      const slice = await report.next();
      return slice.done === true ? undefined : slice.value;
    },
    closeReport: (id) => {
      reports.delete(String(id));
    },
  };
}

runStorage();
