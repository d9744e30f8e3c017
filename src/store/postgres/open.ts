// PostgreSQL: one store over four pools, so that requests wait for neither flushes nor reports, and flushes and
// admissions for nothing else.
//
// It keeps true: every call has a timeout. Only what may be done twice is repeated after a lost connection: look-ups,
// and flushes, which have a number. While the database does not respond, keys that it confirmed within the last minutes
// are accepted (`verified-keys.ts`). Migrations are applied by one instance at a time, all or none. It knows nothing of
// SQLite.

import type { WallClock } from "../../time/clock.ts";
import { coalescePerTick } from "../../time/per-tick.ts";
import { cacheUsers } from "../keys/key-and-user-cache.ts";
import { type Migration, readMigrations } from "../schema/migrations.ts" with { type: "macro" };
import { createSqlStore } from "../sql-store.ts";
import { defaultRetention, type Retention } from "../retention.ts";
import { isReport, type Store } from "../store.ts";
import type { Engine, MaybePromise } from "../engine/engine.ts";
import type { UsageStore } from "../usage/contract.ts";
import { createPostgresEngine } from "./engine.ts";
import { migratePostgres } from "./migrate.ts";
import { requireMoveFinished } from "./move-marker.ts";
import { createPostgresPool, isConnectionLost, type PostgresPool } from "./pool.ts";
import { createVerifiedKeys } from "./verified-keys.ts";
import { StorageError } from "../storage-error.ts";

/** Another instance may be applying migrations. */
const openingTimeoutMs = 60_000;
/** No request waits longer than two seconds. The timeout of the server comes first, since it keeps the connection usable. */
const callTimeoutMs = 1900;
const statementTimeoutMs = 1500;
/** An instance that stops within a flush holds rows of busy keys, which others wait for. */
const idleInTransactionMs = 1500;
/** No response waits this long, only the ledger does. A flush after a long outage has many rows and takes longer. */
const flushTimeoutOf = (rows: number): number => 5000 + rows * 0.2;
/** Of a flush with up to so many rows: one that waits for a lock would otherwise leave its connection behind at each try. */
const flushStatementTimeoutMs = 4500;
const fewRows = 1000;
/** After an outage every connection of a pool may be a lost one. */
const maxRetries = 5;
/** How many calls other than look-ups, checks and flushes may run and wait: all of them get their turn long before their timeout. */
const maxCalls = 100;

interface PostgresStoreOptions {
  url: string;
  retention?: Retention;
  clock: WallClock;
  /** Whether limits go by `clock`, as in tests, and not by the database's. */
  areLimitsByClock?: boolean;
}

/**
 * Opens a PostgreSQL database and applies pending migrations.
 * @throws StorageError if it cannot be reached or written, if a move into it is unfinished, or if it belongs to a newer
 * version or another program
 */
export async function openPostgresStore(
  options: PostgresStoreOptions,
  migrations: readonly Migration[] = readMigrations("postgres-migrations"),
): Promise<Store> {
  await prepareDatabase(options.url, migrations);
  return createPostgresStore(options);
}

async function prepareDatabase(url: string, migrations: readonly Migration[]): Promise<void> {
  const pool = createPostgresPool({ url, connections: 1, statementTimeoutMs: 0 });
  try {
    await pool.withTimeout(openingTimeoutMs, async () => {
      await migratePostgres(pool, migrations);
      await requireMoveFinished(pool);
      await requireWritable(pool);
    });
  } finally {
    await pool.close();
  }
}

/** Leaves no row: a database without any is a target of `tollgate move-to`. @throws if a row cannot be written */
function requireWritable({ client, transaction }: PostgresPool): Promise<unknown> {
  return transaction(async () => {
    await client.unsafe("insert into settings (name, value) values ('start_check', '')");
    await client.unsafe("delete from settings where name = 'start_check'");
  });
}

function createPostgresStore(options: PostgresStoreOptions): Store {
  const { url, retention = defaultRetention, clock, areLimitsByClock = false } = options;
  const lookups = createPostgresPool({ url, connections: 4, statementTimeoutMs });
  const flushes = createFlushes(options);
  const others = createPostgresPool({ url, connections: 4, statementTimeoutMs });
  const limited = { withTimeout: limitCalls(others.withTimeout, maxCalls) };
  const { checkWritable, ...found } = createSqlStore(createPostgresEngine(lookups), clock);
  const lookUp = <T>(work: () => MaybePromise<T>, timeoutMs = callTimeoutMs): Promise<T> =>
    lookups.withTimeout(timeoutMs, () => retryIfConnectionLost(async () => work()));
  const store = createSqlStore(createPostgresEngine(others), clock, retention);
  const { maintain, checkWritable: _, ...nouns } = store;
  const all = Object.fromEntries(
    Object.entries(nouns).map(([name, noun]) => [name, withTimeouts(limited, noun, name)]),
  ) as typeof nouns;
  // What this process changes holds for its next request.
  const version = new Int32Array(1);
  const raising: Pick<Store["subjects"], "update" | "delete"> = {
    update: (...args) => all.subjects.update(...args).finally(() => Atomics.add(version, 0, 1)),
    delete: (...args) => all.subjects.delete(...args).finally(() => Atomics.add(version, 0, 1)),
  };
  const admissions = createPostgresPool({ url, connections: 1, statementTimeoutMs, idleInTransactionMs });
  const { take, beat, listInstances, remove } = createSqlStore(
    createPostgresEngine(admissions, !areLimitsByClock),
    clock,
  ).limits;

  return {
    ...all,
    keys: {
      ...all.keys,
      listEndings: () => lookUp(found.keys.listEndings),
      findActive: coalescePerTick(
        createVerifiedKeys({
          clock,
          // PostgreSQL text cannot contain a null character, so no key does.
          find: async (key, timeoutMs) =>
            key.includes("\0") ? undefined : lookUp(() => found.keys.findActive(key), timeoutMs),
        }),
      ),
    },
    subjects: { ...all.subjects, see: cacheUsers(all.subjects.see, version, clock), ...raising },
    usage: {
      ...all.usage,
      add: flushes.add,
      findOwners: (ids) => lookUp(() => found.usage.findOwners(ids)),
    },
    limits: { ...all.limits, ...withTimeouts(admissions, { take, beat, listInstances, remove }) },
    sessions: { ...all.sessions, find: (idHash, now) => lookUp(() => found.sessions.find(idHash, now)) },
    size: () => others.withTimeout(callTimeoutMs, async () => ({ bytes: (await store.database.describe()).sizeBytes })),
    maintain: () => others.withTimeout(callTimeoutMs, maintain),
    // Like a look-up, it does not wait for the calls of a flood.
    checkWritable: () => lookups.withTimeout(callTimeoutMs, checkWritable),
    async close() {
      await Promise.all([lookups, flushes, admissions, others].map((pool) => pool.close()));
      return undefined;
    },
  };
}

function createFlushes({
  url,
  retention,
  clock,
  areLimitsByClock = false,
}: PostgresStoreOptions): Pick<UsageStore, "add"> & Pick<PostgresPool, "close"> {
  const pool = createPostgresPool({
    url,
    connections: 1,
    statementTimeoutMs: flushStatementTimeoutMs,
    idleInTransactionMs,
  });
  const engine = createPostgresEngine(pool, !areLimitsByClock);
  const transaction: Engine["transaction"] = (work) =>
    engine.transaction(async () => {
      await pool.client.unsafe("set local statement_timeout = 0");
      return work();
    });
  const few = createSqlStore(engine, clock, retention).usage;
  const many = createSqlStore({ ...engine, transaction }, clock, retention).usage;
  return {
    add(increments, flush, responses = [], requests, settled) {
      const rows = increments.length + responses.length + (requests?.rows.length ?? 0);
      return pool.withTimeout(flushTimeoutOf(rows), () => {
        const usage = rows > fewRows ? many : few;
        const add = () => usage.add(increments, flush, responses, requests, settled);
        // Safe to repeat only with a flush id, by which a flush that was committed before is recognised.
        return flush === undefined ? add() : retryIfConnectionLost(add);
      });
    },
    close: pool.close,
  };
}

/** Repeats work, which may therefore be done twice. */
async function retryIfConnectionLost<T>(work: () => Promise<T>): Promise<T> {
  for (let retries = 0; ; retries++) {
    try {
      return await work();
    } catch (error) {
      if (!isConnectionLost(error) || retries === maxRetries) throw error;
    }
  }
}

type WithTimeout = PostgresPool["withTimeout"];

/** Refuses calls while too many run and wait. They would otherwise time out in the queue of a healthy server. */
function limitCalls(withTimeout: WithTimeout, maxOpen: number): WithTimeout {
  let open = 0;
  return async (timeoutMs, work) => {
    if (open === maxOpen) throw new StorageError("too many calls wait for the database");
    open++;
    try {
      return await withTimeout(timeoutMs, work);
    } finally {
      open--;
    }
  };
}

type Methods = Record<string, (...args: never[]) => unknown>;

/** The same methods; each rejects with StorageError if the database does not respond in time. */
function withTimeouts<Noun extends object>(pool: Pick<PostgresPool, "withTimeout">, noun: Noun, nounName = ""): Noun {
  return Object.fromEntries(
    Object.entries(noun as Methods).map(([name, method]) => [
      name,
      isReport(`${nounName}.${name}`)
        ? (...args: never[]) => slicesWithTimeout(pool, method(...args) as AsyncIterable<Uint8Array>)
        : (...args: never[]) => pool.withTimeout(callTimeoutMs, async () => method(...args)),
    ]),
  ) as Noun;
}

/** Reads each slice on demand, so a slow client delays only its own query and holds no connection between slices. */
async function* slicesWithTimeout(
  pool: Pick<PostgresPool, "withTimeout">,
  slices: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  const iterator = slices[Symbol.asyncIterator]();
  for (;;) {
    const slice = await pool.withTimeout(callTimeoutMs, () => iterator.next());
    if (slice.done === true) return;
    yield slice.value;
  }
}
