import { listPending } from "../schema/migrations.ts";
import { readMigrations } from "../schema/migrations.ts" with { type: "macro" };
import { listApplied, requireVersion } from "./migrate.ts";
import { requireMoveFinished } from "./move-marker.ts";
import { createPostgresPool, type PostgresPool } from "./pool.ts";
import { StorageError } from "../storage-error.ts";
import type { DatabaseState } from "../engine/contract.ts";

const timeoutMs = 10_000;

/**
 * Reads a database without changing it, also while servers use it.
 * @returns undefined if no server has created its tables yet
 * @throws StorageError if it cannot be reached or is read-only, if a move into it is unfinished, or if it belongs to a
 * newer version or another program
 */
export async function inspectPostgres(url: string): Promise<DatabaseState | undefined> {
  const pool = createPostgresPool({ url, connections: 1, statementTimeoutMs: timeoutMs });
  try {
    return await pool.withTimeout(timeoutMs, () => inspect(pool));
  } finally {
    await pool.close();
  }
}

const query = `select pg_database_size(current_database()) as bytes,
  (extract(epoch from now()) * 1000)::bigint as now,
  current_setting('transaction_read_only') as read_only,
  to_regclass('keys') is not null as has_keys`;

async function inspect(pool: PostgresPool): Promise<DatabaseState | undefined> {
  const { client } = pool;
  await requireVersion(client);
  const [state] = (await client.unsafe(query)) as {
    bytes: string;
    now: string;
    read_only: string;
    has_keys: boolean;
  }[];
  if (state?.read_only !== "off") throw new StorageError("the database is read-only; use the primary server");
  const applied = await listApplied(client);
  const pendingMigrations = listPending(applied, readMigrations("postgres-migrations"), state.has_keys).length;
  if (applied.length === 0) return undefined;
  await requireMoveFinished(pool);
  const [latest] = (await client.unsafe("select max(last_used_at) as at from keys")) as { at: string | null }[];
  return {
    bytes: Number(state.bytes),
    pendingMigrations,
    lastUsedAt: typeof latest?.at === "string" ? Number(latest.at) : undefined,
    serverTime: Number(state.now),
  };
}
