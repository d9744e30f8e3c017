import { sql } from "drizzle-orm";
import type { WallClock } from "../../../src/time/clock.ts";
import { createSqlStore } from "../../../src/store/sql-store.ts";
import { openPostgresStore } from "../../../src/store/postgres/open.ts";
import { createPostgresPool } from "../../../src/store/postgres/pool.ts";
import { createPostgresEngine } from "../../../src/store/postgres/engine.ts";
import { emptyTables, takeDatabase } from "../../support/postgres.ts";
import type { TestEngine, TestStore } from "../test-store.ts";

export async function openPostgresTestStore(clock: WallClock = Date.now, existingUrl?: string): Promise<TestStore> {
  const database = existingUrl === undefined ? await takeDatabase() : { url: existingUrl, release: () => {} };
  const store = await openPostgresStore({ url: database.url, clock, areLimitsByClock: clock !== Date.now });
  return {
    store,
    entries: [],
    openAnother: () => openPostgresTestStore(clock, database.url),
    async [Symbol.asyncDispose]() {
      await store.close();
      database.release();
    },
  };
}

/** @param hasClock whether limits go by the database's clock */
export async function openPostgresTestEngine(
  clock: WallClock = Date.now,
  { hasClock = clock === Date.now } = {},
): Promise<TestEngine> {
  const database = await takeDatabase();
  const pool = createPostgresPool({ url: database.url, connections: 4, statementTimeoutMs: 0 });
  const engine = createPostgresEngine(pool, hasClock);
  return {
    store: createSqlStore(engine, clock),
    engine,
    clear: async () => void (await engine.rows(sql.raw(emptyTables))),
    async [Symbol.asyncDispose]() {
      await pool.close();
      database.release();
    },
  };
}
