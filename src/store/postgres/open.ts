import type { WallClock } from "../../time/clock.ts";
import { createSqlStore } from "../sql-store.ts";
import { prepareFindActiveKey } from "../keys.ts";
import { coalescePerTick } from "../../time/per-tick.ts";
import { type Migration, readMigrations } from "../migrations.ts" with { type: "macro" };
import { isMoveUnfinished } from "./move-marker.ts";
import { migratePostgres } from "./migrate.ts";
import { createPostgresPool, isConnectionLost, type PostgresPool } from "./pool.ts";
import { postgresEngine } from "./engine.ts";
import { prepareFindSession } from "../sessions.ts";
import { type Store, StorageError } from "../store.ts";
import { createVerifiedKeys } from "./verified-keys.ts";

/** Another instance may be bringing the database up to date. */
const openingTimeoutMs = 60_000;
/** No request waits longer than two seconds. The server is to give up first: then the connection stays good. */
const answerTimeoutMs = 1900;
const statementTimeoutMs = 1500;
/** No response waits for a flush longer than the ledger's patience; one with the counts of a long outage takes its time. */
const flushTimeoutMs = 5000;
const flushTimeoutPerCountMs = 0.2;
/** Each connection of a pool may turn out to be one that was cut. */
const mostCuts = 5;

export interface PostgresStoreOptions {
  url: string;
  clock: WallClock;
}

/**
 * Opens a PostgreSQL database, and brings it up to date.
 * @throws StorageError where it cannot be reached, is half moved, or a newer version wrote it
 */
export async function openPostgresStore(
  { url, clock }: PostgresStoreOptions,
  migrations: readonly Migration[] = readMigrations("postgres-migrations"),
): Promise<Store> {
  await prepareDatabase(url, migrations);
  return storeOver(url, clock);
}

async function prepareDatabase(url: string, migrations: readonly Migration[]): Promise<void> {
  const pool = createPostgresPool({ url, connections: 1, statementTimeoutMs: 0 });
  try {
    await pool.within(openingTimeoutMs, async () => {
      await migratePostgres(pool, migrations);
      if (await isMoveUnfinished(pool)) {
        throw new StorageError("a move into this database was not finished; run `tollgate move-to` again");
      }
    });
  } finally {
    await pool.close();
  }
}

/** Three pools, so that requests wait neither for flushes nor for reports. */
function storeOver(url: string, clock: WallClock): Store {
  const lookups = createPostgresPool({ url, connections: 4, statementTimeoutMs });
  const counting = createPostgresPool({ url, connections: 1, statementTimeoutMs: 0 });
  const rest = createPostgresPool({ url, connections: 4, statementTimeoutMs });
  const lookupEngine = postgresEngine(lookups);
  const findActive = prepareFindActiveKey(lookupEngine);
  const findSession = prepareFindSession(lookupEngine);
  const countingStore = createSqlStore(postgresEngine(counting), clock);
  const store = createSqlStore(postgresEngine(rest), clock);

  return {
    keys: {
      ...answeredInTime(rest, store.keys),
      findActive: coalescePerTick(
        createVerifiedKeys({
          clock,
          // PostgreSQL takes no null character in a text, so no key has one.
          ask: async (key, timeoutMs) =>
            key.includes("\0") ? undefined : lookups.within(timeoutMs, () => againIfCut(async () => findActive(key))),
        }),
      ),
    },
    usage: {
      ...answeredInTime(rest, store.usage),
      add: (counts, flush) =>
        counting.within(flushTimeoutMs + counts.length * flushTimeoutPerCountMs, () => {
          const add = () => countingStore.usage.add(counts, flush);
          // By its number a flush is known again, should it have come through before the connection was lost.
          return flush === undefined ? add() : againIfCut(add);
        }),
      daily: (sinceDay) => slicesInTime(rest, store.usage.daily(sinceDay)),
      history: (range) => slicesInTime(rest, store.usage.history(range)),
    },
    gpu: answeredInTime(rest, store.gpu),
    sessions: {
      ...answeredInTime(rest, store.sessions),
      find: (idHash, now) => lookups.within(answerTimeoutMs, () => againIfCut(async () => findSession(idHash, now))),
    },
    settings: answeredInTime(rest, store.settings),
    checkWritable: () => rest.within(answerTimeoutMs, store.checkWritable),
    async close() {
      await Promise.all([lookups, counting, rest].map((pool) => pool.close()));
    },
  };
}

/** What may be done twice is simply done again where its connection was cut. */
async function againIfCut<T>(work: () => Promise<T>): Promise<T> {
  for (let again = 1; ; again++) {
    try {
      return await work();
    } catch (error) {
      if (!isConnectionLost(error) || again > mostCuts) throw error;
    }
  }
}

type Methods = Record<string, (...args: never[]) => unknown>;

/** Every method of a noun, with a StorageError where there is no answer in time. */
function answeredInTime<Noun extends object>(pool: PostgresPool, noun: Noun): Noun {
  return Object.fromEntries(
    Object.entries(noun as Methods).map(([name, method]) => [
      name,
      (...args: never[]) => pool.within(answerTimeoutMs, async () => method(...args)),
    ]),
  ) as Noun;
}

/** The next slice is read when it is asked for, so a slow client slows its own query and holds no connection meanwhile. */
async function* slicesInTime(pool: PostgresPool, slices: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reading = slices[Symbol.asyncIterator]();
  for (;;) {
    const slice = await pool.within(answerTimeoutMs, () => reading.next());
    if (slice.done === true) return;
    yield slice.value;
  }
}
