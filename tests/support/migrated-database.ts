import { Database } from "bun:sqlite";
import { copyFileSync } from "node:fs";
import { passwordHashSetting } from "../../src/admin/session/password.ts";
import { openWriter } from "../../src/store/sqlite/engine.ts";
import { databaseFile } from "../../src/store/sqlite/open.ts";
import { quickPasswordHash } from "./admin-client.ts";
import { createTempFolder } from "./temp-folder.ts";

let migrated: string | undefined;

/** Gives a data folder a database with all tables: a copy, because the migrations take twenty times as long. */
export function copyMigratedDatabase(dataDir: string): void {
  migrated ??= migrateOnce();
  copyFileSync(migrated, databaseFile(dataDir));
}

/** The same, with the admin's password of tests. */
export function copyDatabaseWithPassword(dataDir: string): void {
  copyMigratedDatabase(dataDir);
  using client = new Database(databaseFile(dataDir));
  client.run("insert into settings (name, value) values (?, ?)", [passwordHashSetting, quickPasswordHash]);
}

function migrateOnce(): string {
  const file = databaseFile(createTempFolder().path);
  openWriter(file).close();
  return file;
}
