import takeLeases from "../limits/take-leases.postgres.sql" with { type: "text" };
import modelMonths from "../usage/model-months.postgres.sql" with { type: "text" };
import { leastWriter, listPending, type Migration, takesAway } from "../schema/migrations.ts";
import { applicationName, type PostgresPool } from "./pool.ts";
import { requireTableNames, tableNames } from "../schema/table-names.ts";
import { StorageError } from "../storage-error.ts";

const minVersion = 15;
/** An arbitrary number, the same in every instance. */
const migrationLock = 7_655_442;

/**
 * Applies pending migrations, all or none, one instance at a time.
 * @throws StorageError if the server is too old, or if a newer version of this program or another program wrote the
 * database; nothing is written then
 */
export async function migratePostgres(pool: PostgresPool, migrations: readonly Migration[]): Promise<void> {
  const { client } = pool;
  await requireVersion(client);
  await pool.transaction(async () => {
    await client.unsafe(`select pg_advisory_xact_lock(${migrationLock})`);
    const applied = await listApplied(client);
    const existing = await listTables(client);
    const hasOurs = existing.some((name) => tableNames.includes(name));
    const pending = listPending(applied, migrations, hasOurs);
    if (pending.length === 0) return requireTableNames(existing);
    await client.unsafe(
      "create table if not exists tollgate_migrations (created_at bigint primary key, hash text not null)",
    );
    if (applied.length > 0 && pending.some(takesAway)) await requireStopped(client);
    const record = "insert into tollgate_migrations (created_at, hash) values ($1, $2)";
    for (const { createdAt, hash, statements } of pending) {
      for (const statement of statements) await client.unsafe(statement);
      await client.unsafe(record, [createdAt, hash]);
    }
    await client.unsafe("delete from tollgate_migrations where created_at < 0");
    await client.unsafe(record, [leastWriter(migrations), "least writer"]);
    for (const routine of [takeLeases, modelMonths]) await client.unsafe(routine);
  });
}

type Client = PostgresPool["client"];

/** Longer than a pool keeps a connection that is idle: one that was used before is of a host that is gone. */
const usedSeconds = 70;
const [triesToSee, seeAgainSeconds] = [10, 0.5];

/** What waits for the lock of migrations has not begun. */
const othersOpen = `select 1 from pg_stat_activity where application_name = '${applicationName}'
  and datname = current_database() and pid <> pg_backend_pid() and wait_event is distinct from 'advisory'
  and state_change > now() - interval '${usedSeconds} seconds' limit 1`;

/** @throws StorageError if an instance of the build before runs: it would go on writing to what is gone */
async function requireStopped(client: Client): Promise<void> {
  for (let tries = 0; tries < triesToSee; tries++) {
    if (((await client.unsafe(othersOpen)) as unknown[]).length === 0) return;
    await client.unsafe(`select pg_sleep(${seeAgainSeconds}), pg_stat_clear_snapshot()`);
  }
  throw new StorageError("an instance of an earlier version still runs; stop all instances, then start this version");
}

/** @throws StorageError if the server is too old */
export async function requireVersion(client: Client): Promise<void> {
  const [row] = (await client.unsafe("show server_version_num")) as { server_version_num: string }[];
  if (Math.floor(Number(row?.server_version_num) / 10_000) < minVersion) {
    throw new StorageError(`the server is too old; PostgreSQL ${minVersion} or later is required`);
  }
}

async function listTables(client: Client): Promise<string[]> {
  const rows = (await client.unsafe(
    "select table_name as name from information_schema.tables where table_schema = current_schema()",
  )) as { name: string }[];
  return rows.map(({ name }) => name);
}

/** When each applied migration was generated; none in a new database. */
export async function listApplied(client: Client): Promise<number[]> {
  const [table] = (await client.unsafe("select to_regclass('tollgate_migrations')::text as name")) as {
    name: string | null;
  }[];
  if (table === undefined || table.name === null) return [];
  const rows = (await client.unsafe("select created_at as at from tollgate_migrations")) as { at: string }[];
  return rows.map(({ at }) => Number(at));
}
