import type { Database } from "bun:sqlite";
import { type Migration, pendingAfter } from "../migrations.ts";
import { StorageError } from "../store.ts";

/**
 * Brings a database up to date, all or nothing. Drizzle's own migrator is not used: two first starts at once crash it, and a
 * table that a migration recreates would lose its children and hand its old ids out again.
 * @throws StorageError where a newer program wrote the database; nothing is written then
 */
export function migrate(client: Database, migrations: readonly Migration[]): void {
  if (pendingAfter(lastApplied(client), migrations).length === 0) return;
  // Inside a transaction this pragma does nothing, and a recreated table would delete what refers to it.
  client.run("PRAGMA foreign_keys = OFF");
  client.transaction(() => applyPending(client, migrations)).exclusive();
  client.run("PRAGMA foreign_keys = ON");
}

function lastApplied(client: Database): number {
  const table = client.query("SELECT name FROM sqlite_schema WHERE name = '__drizzle_migrations'").get();
  if (table === null) return 0;
  const row = client
    .query<{ last: number | null }, []>("SELECT max(created_at) AS last FROM __drizzle_migrations")
    .get();
  return row?.last ?? 0;
}

function applyPending(client: Database, migrations: readonly Migration[]): void {
  // Another process may have been faster since the first look.
  const pending = pendingAfter(lastApplied(client), migrations);
  if (pending.length === 0) return;
  client.run(
    "CREATE TABLE IF NOT EXISTS __drizzle_migrations (id INTEGER PRIMARY KEY, hash TEXT NOT NULL, created_at INTEGER)",
  );
  const sequences = listSequences(client);
  for (const { createdAt, hash, statements } of pending) {
    for (const statement of statements) client.run(statement);
    client.run("INSERT INTO __drizzle_migrations (hash, created_at) VALUES (?, ?)", [hash, createdAt]);
  }
  for (const sequence of sequences) restoreSequence(client, sequence);
  if (client.query("PRAGMA foreign_key_check").get() !== null) {
    throw new StorageError(
      "the database could not be brought up to date: rows would refer to others that do not exist",
    );
  }
}

interface Sequence {
  name: string;
  seq: number;
}

/** The highest ids ever handed out, by table. */
function listSequences(client: Database): Sequence[] {
  const table = client.query("SELECT name FROM sqlite_schema WHERE name = 'sqlite_sequence'").get();
  return table === null ? [] : client.query<Sequence, []>("SELECT name, seq FROM sqlite_sequence").all();
}

/** A recreated table counts from its highest row: ids of deleted rows would come back. */
function restoreSequence(client: Database, { name, seq }: Sequence): void {
  const tables = client.query("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?").all(name);
  if (tables.length === 0) return;
  const { changes } = client.run("UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?", [seq, name]);
  if (changes === 0) client.run("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", [name, seq]);
}
