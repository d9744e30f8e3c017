import type { WallClock } from "../../../src/time/clock.ts";
import { createSqlStore } from "../../../src/store/sql-store.ts";
import { readMigrations } from "../../../src/store/schema/migrations.ts";
import { openPostgresStore } from "../../../src/store/postgres/open.ts";
import { migratePostgres } from "../../../src/store/postgres/migrate.ts";
import { createPostgresPool } from "../../../src/store/postgres/pool.ts";
import { createPostgresEngine } from "../../../src/store/postgres/engine.ts";
import { sharedPostgres } from "../../support/postgres.ts";
import type { TestEngine, TestStore } from "../test-store.ts";

/** Tests run one after the other and share a database: emptying one is much faster than creating one. */
let database: Promise<string> | undefined;

async function emptyDatabase(): Promise<string> {
  const postgres = await sharedPostgres();
  const url = await (database ??= postgres.createDatabase());
  const pool = createPostgresPool({ url, connections: 1, statementTimeoutMs: 0 });
  await migratePostgres(pool, readMigrations("postgres-migrations"));
  const tables = (await pool.client.unsafe(
    "select tablename as name from pg_tables where schemaname = 'public' and tablename <> 'tollgate_migrations'",
  )) as { name: string }[];
  await pool.client.unsafe(`truncate ${tables.map(({ name }) => name).join()} restart identity`);
  await pool.close();
  return url;
}

export async function openPostgresTestStore(clock: WallClock = Date.now, existingUrl?: string): Promise<TestStore> {
  const url = existingUrl ?? (await emptyDatabase());
  const store = await openPostgresStore({ url, clock });
  return {
    store,
    entries: [],
    openAnother: () => openPostgresTestStore(clock, url),
    [Symbol.asyncDispose]: () => store.close(),
  };
}

export async function openPostgresTestEngine(clock: WallClock = Date.now): Promise<TestEngine> {
  const pool = createPostgresPool({ url: await emptyDatabase(), connections: 4, statementTimeoutMs: 0 });
  const engine = createPostgresEngine(pool);
  return { store: createSqlStore(engine, clock), engine, [Symbol.asyncDispose]: () => pool.close() };
}
