import { sql } from "drizzle-orm";
import type { BackupFacts, DatabaseStore } from "./contract.ts";
import type { Engine } from "./engine.ts";
import { tableNames } from "../schema/table-names.ts";
import { StorageError } from "../storage-error.ts";

/** Takes a few milliseconds. */
const maxCounted = 40_000;

interface Settings {
  find: (name: string) => Promise<string | undefined>;
  set: (name: string, value: string) => Promise<void>;
}

const backupsSetting = "backups";

export function createDatabaseStore({ describe, rows, migrations }: Engine, settings: Settings): DatabaseStore {
  return {
    describe,
    tables: async () => tableNames,
    async countRows(table) {
      if (!tableNames.includes(table)) throw new StorageError(`there is no table ${table}`);
      const name = sql.identifier(table);
      const [found] = await rows<{ rows: number }>(
        sql`select count(*) as rows from (select 1 from ${name} limit ${maxCounted + 1}) as some_rows`,
      );
      const counted = found?.rows ?? 0;
      return { rows: Math.min(counted, maxCounted), isExact: counted <= maxCounted };
    },
    async schema() {
      const table = sql.identifier(migrations.table);
      const [row] = await rows<{ last: number; least: number }>(
        sql`select max(created_at) as last, min(created_at) as least from ${table}`,
      );
      // What is below 0 is the least build that may write; see `schema/migrations.ts`.
      return { isNewer: (row?.last ?? 0) > migrations.latest, mayWrite: -(row?.least ?? 0) <= migrations.latest };
    },
    backups: async () => JSON.parse((await settings.find(backupsSetting)) ?? "{}") as BackupFacts,
    recordBackups: (facts) => settings.set(backupsSetting, JSON.stringify(facts)),
  };
}
