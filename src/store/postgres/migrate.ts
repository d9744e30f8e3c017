import { type Migration, listPending } from "../migrations.ts";
import type { PostgresPool } from "./pool.ts";
import { StorageError } from "../store.ts";

const minVersion = 15;
/** An arbitrary number, the same in every instance. */
const migrationLock = 7_655_442;

/**
 * Applies pending migrations, all or none, one instance at a time.
 * @throws StorageError if the server is too old, or if a newer version of this program wrote the database; nothing is
 * written then
 */
export async function migratePostgres(pool: PostgresPool, migrations: readonly Migration[]): Promise<void> {
  const { client } = pool;
  await requireVersion(client);
  await pool.transaction(async () => {
    await client.unsafe(`select pg_advisory_xact_lock(${migrationLock})`);
    const pending = listPending(await lastApplied(client), migrations);
    if (pending.length === 0) return;
    await client.unsafe(
      "create table if not exists tollgate_migrations (created_at bigint primary key, hash text not null)",
    );
    for (const { createdAt, hash, statements } of pending) {
      for (const statement of statements) await client.unsafe(statement);
      await client.unsafe("insert into tollgate_migrations (created_at, hash) values ($1, $2)", [createdAt, hash]);
    }
  });
}

type Client = PostgresPool["client"];

async function requireVersion(client: Client): Promise<void> {
  const [row] = (await client.unsafe("show server_version_num")) as { server_version_num: string }[];
  if (Math.floor(Number(row?.server_version_num) / 10_000) < minVersion) {
    throw new StorageError(`the server is too old; PostgreSQL ${minVersion} or later is required`);
  }
}

async function lastApplied(client: Client): Promise<number> {
  const [table] = (await client.unsafe("select to_regclass('tollgate_migrations')::text as name")) as {
    name: string | null;
  }[];
  if (table === undefined || table.name === null) return 0;
  const [row] = (await client.unsafe("select max(created_at) as last from tollgate_migrations")) as {
    last: string | null;
  }[];
  return Number(row?.last ?? 0);
}
