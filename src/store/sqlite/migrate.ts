import type { Database } from "bun:sqlite";
import modelMonths from "../usage/model-months.sqlite.sql" with { type: "text" };
import { leastWriter, listPending, type Migration } from "../schema/migrations.ts";
import { StorageError } from "../storage-error.ts";

/**
 * Applies pending migrations, all or none. Replaces Drizzle's migrator, which crashes if two processes start on a new
 * database at once; and if a migration recreates a table, it deletes the rows that refer to it and reuses its ids.
 * @param routines triggers, which are written again
 * @throws StorageError if a newer version of this program wrote the database, or another program; nothing is written then
 */
export function migrate(client: Database, migrations: readonly Migration[], routines = [modelMonths]): void {
  if (listPending(listApplied(client), migrations).length === 0) return;
  // Outside the transaction, where it has an effect. Else dropping a table would delete the rows that refer to it.
  client.run("PRAGMA foreign_keys = OFF");
  client.transaction(() => applyPending(client, migrations, routines)).exclusive();
  client.run("PRAGMA foreign_keys = ON");
}

/** When each applied migration was generated; none in a new database. */
export function listApplied(client: Database): number[] {
  const table = client.query("SELECT name FROM sqlite_schema WHERE name = '__drizzle_migrations'").get();
  if (table === null) return [];
  return client
    .query<{ at: number }, []>("SELECT created_at AS at FROM __drizzle_migrations")
    .all()
    .map(({ at }) => at);
}

function applyPending(client: Database, migrations: readonly Migration[], routines: readonly string[]): void {
  // Read again: another process may have migrated meanwhile.
  const applied = listApplied(client);
  const pending = listPending(applied, migrations, client.query("SELECT 1 FROM sqlite_schema").get() !== null);
  if (pending.length === 0) return;
  client.run(
    "CREATE TABLE IF NOT EXISTS __drizzle_migrations (id INTEGER PRIMARY KEY, hash TEXT NOT NULL, created_at INTEGER)",
  );
  const sequences = listSequences(client);
  const record = "INSERT INTO __drizzle_migrations (hash, created_at) VALUES (?, ?)";
  for (const { createdAt, hash, statements } of pending) {
    for (const statement of statements) client.run(statement);
    client.run(record, [hash, createdAt]);
  }
  client.run("DELETE FROM __drizzle_migrations WHERE created_at < 0");
  client.run(record, ["least writer", leastWriter(migrations)]);
  for (const routine of routines) client.run(routine);
  for (const sequence of sequences) restoreSequence(client, sequence);
  if (client.query("PRAGMA foreign_key_check").get() !== null) {
    throw new StorageError("the database cannot be migrated: rows would refer to rows that do not exist");
  }
}

interface Sequence {
  name: string;
  seq: number;
}

/** The highest ids ever assigned, by table. */
function listSequences(client: Database): Sequence[] {
  const table = client.query("SELECT name FROM sqlite_schema WHERE name = 'sqlite_sequence'").get();
  return table === null ? [] : client.query<Sequence, []>("SELECT name, seq FROM sqlite_sequence").all();
}

/** A recreated table would continue from its highest remaining id and reuse those of deleted rows. */
function restoreSequence(client: Database, { name, seq }: Sequence): void {
  const tables = client.query("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?").all(name);
  if (tables.length === 0) return;
  const { changes } = client.run("UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?", [seq, name]);
  if (changes === 0) client.run("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", [name, seq]);
}
