// `tollgate move-to`: copies a SQLite database into an empty PostgreSQL database, compares the two, and marks the data
// folder, so that nothing uses the old copy unnoticed. No server may run meanwhile: the SQLite database is locked.
//
//   target: empty -> marked -> copied -> released, once the folder is marked
//
// It keeps true: until it is complete the target is marked: no server starts on it, and another move starts over. It is
// complete before the folder is marked, and released after that: killed in between, it leaves neither side usable, but
// the next move takes the folder's mark away and starts over.

import type { Database } from "bun:sqlite";
import { readMigrations } from "../schema/migrations.ts" with { type: "macro" };
import { isMoveCopied, isMoveUnfinished, moveMarker } from "../postgres/move-marker.ts";
import { type MovedTable, findDifference, listTables } from "./tables.ts";
import { migratePostgres } from "../postgres/migrate.ts";
import { createPostgresPool, type PostgresPool } from "../postgres/pool.ts";
import type { WallClock } from "../../time/clock.ts";
import { markMoved, requireNotMoved, unmarkMoved } from "../sqlite/database-file.ts";
import { asWriter } from "../sqlite/engine.ts";
import { createFold } from "../sqlite/staged-flushes.ts";
import { lockDatabase } from "../sqlite/lock-database.ts";
import { toStorageError, StorageError } from "../storage-error.ts";

const rowsPerBatch = 2000;

interface Move {
  /** The SQLite database. */
  file: string;
  /** The PostgreSQL database, which must be empty. */
  url: string;
  clock: WallClock;
  /** Called after each batch, and once for an empty table. Counts are rows. */
  onProgress: (table: string, copied: number, total: number) => void;
  signal: AbortSignal;
}

/**
 * @returns the number of rows copied
 * @throws StorageError also if a server runs
 */
export async function moveToPostgres(move: Move): Promise<number> {
  const pool = createPostgresPool({ url: move.url, connections: 1, statementTimeoutMs: 0 });
  try {
    const source = lockDatabase(move.file);
    try {
      return await moveLocked(move, source, pool);
    } finally {
      source.close();
    }
  } catch (error) {
    throw toStorageError(error);
  } finally {
    await pool.close();
  }
}

async function moveLocked(move: Move, source: Database, pool: PostgresPool): Promise<number> {
  const { file, clock } = move;
  await migratePostgres(pool, readMigrations("postgres-migrations"));
  // Only a move that was killed before it released this target may be repeated.
  if (!(await isMoveCopied(pool))) requireNotMoved(file);
  unmarkMoved(file);
  await prepareSource(source, file, clock);
  const tables = await listTables(source, pool.client);
  await markTarget(pool, tables);
  let rows = 0;
  for (const table of tables) if (!table.isDerived) rows += await copyTable(table, source, pool, move);
  for (const table of tables) {
    const difference = await findDifference(table, source, pool.client);
    if (difference !== undefined) throw new StorageError(`the copy differs from the original in ${difference}`);
  }
  await complete(source, pool);
  markMoved(file, clock());
  await pool.client.unsafe("delete from settings where name = $1", [moveMarker]);
  return rows;
}

/** Applies pending migrations, and adds what a killed server left staged. @throws StorageError */
async function prepareSource(source: Database, file: string, clock: WallClock): Promise<void> {
  const staged = createFold(asWriter(source, file), clock);
  await staged.fold();
  if (staged.takeRefused().length > 0) throw new StorageError("the data folder has counts that its tables refuse");
  // The prepared statements keep the connection open until the program ends, which leaves the log as it is then.
  source.run("PRAGMA wal_checkpoint(TRUNCATE)");
}

/** Marks an empty target, and empties one that an unfinished move has marked. @throws StorageError for any other */
async function markTarget(pool: PostgresPool, tables: readonly MovedTable[]): Promise<void> {
  const names = tables.map(({ name }) => name).join();
  await pool.transaction(async () => {
    await pool.client.unsafe(`lock table ${names} in access exclusive mode`);
    if (await isMoveUnfinished(pool)) await pool.client.unsafe(`truncate ${names}`);
    for (const { name } of tables) {
      const rows = (await pool.client.unsafe(`select 1 from ${name} limit 1`)) as unknown[];
      if (rows.length > 0) throw new StorageError(`the target is not empty: there are rows in ${name}`);
    }
    await pool.client.unsafe("insert into settings (name, value) values ($1, '')", [moveMarker]);
  });
}

async function copyTable(
  { name }: MovedTable,
  source: Database,
  pool: PostgresPool,
  { onProgress, signal }: Move,
): Promise<number> {
  const total = source.query<{ total: number }, []>(`select count(*) as total from ${name}`).get()?.total ?? 0;
  const insert = `insert into ${name} select * from json_populate_recordset(null::${name}, cast(cast($1 as text) as json))`;
  let copied = 0;
  let batch: unknown[] = [];
  const flush = async (): Promise<void> => {
    if (signal.aborted) throw new StorageError("stopped before everything was copied; run it again to start over");
    if (batch.length > 0) await pool.client.unsafe(insert, [JSON.stringify(batch)]);
    copied += batch.length;
    batch = [];
    onProgress(name, copied, total);
  };
  for (const row of source.query(`select * from ${name}`).iterate()) {
    batch.push(row);
    if (batch.length === rowsPerBatch) await flush();
  }
  if (batch.length > 0 || total === 0) await flush();
  return copied;
}

/** Continues the ids of the source, including those of deleted rows. The copy is complete then, and not yet released. */
async function complete(source: Database, { client, transaction }: PostgresPool): Promise<void> {
  const sequences = source.query<{ name: string; seq: number }, []>("select name, seq from sqlite_sequence").all();
  await transaction(async () => {
    for (const { name, seq } of sequences) {
      await client.unsafe("select setval(pg_get_serial_sequence($1, 'id'), greatest($2::bigint, 1), $2::bigint > 0)", [
        name,
        seq,
      ]);
    }
    await client.unsafe(
      "select setval(pg_get_serial_sequence('request_log', 'id'), greatest(max(id), 1), max(id) is not null) from request_log",
    );
    await client.unsafe("update settings set value = 'copied' where name = $1", [moveMarker]);
  });
}
