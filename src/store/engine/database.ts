import { sql } from "drizzle-orm";
import type { DatabaseStore } from "./contract.ts";
import type { Engine } from "./engine.ts";
import { tableNames } from "../schema/tables.ts";
import { StorageError } from "../storage-error.ts";

/** Takes a few milliseconds. */
const maxCounted = 40_000;

export function createDatabaseStore({ describe, rows }: Engine): DatabaseStore {
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
  };
}
