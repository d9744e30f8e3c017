import { Database } from "bun:sqlite";
import { readMigrations } from "../schema/migrations.ts" with { type: "macro" };
import { isMoveUnfinished, moveMarker } from "../postgres/move-marker.ts";
import { type MovedTable, findDifference, listTables } from "./tables.ts";
import { migratePostgres } from "../postgres/migrate.ts";
import { createPostgresPool, type PostgresPool } from "../postgres/pool.ts";
import type { WallClock } from "../../time/clock.ts";
import { openWriter } from "../sqlite/engine.ts";
import { createFold } from "../sqlite/staged-flushes.ts";
import { toStorageError } from "../storage-error.ts";
import { StorageError } from "../storage-error.ts";

const rowsPerBatch = 2000;

export interface Move {
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
 * Copies a SQLite database into an empty PostgreSQL database and compares the two. Until it is complete the target is
 * marked: no server starts on it, and another move starts over.
 * @returns the number of rows copied
 * @throws StorageError
 */
export async function moveToPostgres({ file, url, clock, onProgress, signal }: Move): Promise<number> {
  const pool = createPostgresPool({ url, connections: 1, statementTimeoutMs: 0 });
  try {
    await prepareSource(file, clock);
    using source = new Database(file, { readonly: true, strict: true });
    await migratePostgres(pool, readMigrations("postgres-migrations"));
    const tables = await listTables(source, pool.client);
    await markTarget(pool, tables);
    return await copyAll({ source, pool, tables, onProgress, signal });
  } catch (error) {
    throw toStorageError(error);
  } finally {
    await pool.close();
  }
}

/** Applies pending migrations, and adds what a killed server left in the journal. @throws StorageError */
async function prepareSource(file: string, clock: WallClock): Promise<void> {
  const engine = openWriter(file);
  try {
    const journal = createFold(engine, clock);
    await journal.fold();
    if (journal.takeRefused().length > 0) throw new StorageError("the data folder has counts that its tables refuse");
  } finally {
    engine.close();
  }
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

interface Copy extends Pick<Move, "onProgress" | "signal"> {
  source: Database;
  pool: PostgresPool;
  tables: readonly MovedTable[];
}

async function copyAll({ source, pool, tables, onProgress, signal }: Copy): Promise<number> {
  const version = dataVersion(source);
  let rows = 0;
  for (const table of tables) rows += await copyTable(table, { source, pool, onProgress, signal });
  for (const table of tables) {
    const difference = await findDifference(table, source, pool.client);
    if (difference !== undefined) throw new StorageError(`the copy differs from the original in ${difference}`);
  }
  // A journal that was written to before the first reading of the version has flushes that no table holds.
  if (dataVersion(source) !== version || hasJournal(source)) {
    throw new StorageError("the data folder changed while it was copied; stop its server and run this again");
  }
  await finish(source, pool);
  return rows;
}

async function copyTable(
  { name }: MovedTable,
  { source, pool, onProgress, signal }: Omit<Copy, "tables">,
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

/** Continues the ids of the source, including those of deleted rows, and removes the marker. */
async function finish(source: Database, { client, transaction }: PostgresPool): Promise<void> {
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
    await client.unsafe("delete from settings where name = $1", [moveMarker]);
  });
}

const hasJournal = (source: Database): boolean => source.query("select 1 from usage_journal limit 1").get() !== null;

/** Changes when another connection writes. */
function dataVersion(source: Database): number | undefined {
  return source.query<{ data_version: number }, []>("pragma data_version").get()?.data_version;
}
