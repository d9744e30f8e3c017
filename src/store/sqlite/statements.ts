import type { Database } from "bun:sqlite";
import { and, eq, getTableName, sql } from "drizzle-orm";
import { type Engine, type KeySums, orZero, groupRows } from "../engine/engine.ts";
import { columnName, primaryKeyOf } from "../schema/tables.ts";

/** A statement for this many rows takes two thirds of the time of one for each. */
const rowsPerInsert = 32;

/** The statements that are written in SQLite's own way, because they run often or have many rows. */
export function prepareStatements(
  client: Database,
  db: Engine["db"],
): Pick<Engine, "prepareInsert" | "prepareDelete" | "prepareDeleteOldest" | "prepareKeySums"> {
  return {
    // Takes a fourth of the time of a statement that expands all rows from JSON (SQLite 3.54).
    prepareInsert: (table, columns, sums) => {
      const nameOf = (name: string): string => columnName(table, name);
      const added = sums?.added.map(nameOf).map((name) => `${name} = ${name} + excluded.${name}`) ?? [];
      const doesAdd = added.length === 0 ? "nothing" : `update set ${added.join()}`;
      const row = `(${columns.map(() => "?").join()})`;
      const statement = (count: number): string =>
        `insert into ${getTableName(table)} (${columns.map(nameOf).join()}) values ${Array(count).fill(row).join()}` +
        (sums === undefined ? "" : ` on conflict (${sums.key.map(nameOf).join()}) do ${doesAdd}`);
      const insert = client.prepare(statement(1));
      // Only few tables ever get so many rows at once.
      let insertMany: typeof insert | undefined;
      return (given) => async () => {
        const rows = sums === undefined || given.length < 2 ? given : groupRows(given, sums.key.length);
        let at = 0;
        for (; at + rowsPerInsert <= rows.length; at += rowsPerInsert) {
          insertMany ??= client.prepare(statement(rowsPerInsert));
          insertMany.run(...rows.slice(at, at + rowsPerInsert).flat());
        }
        for (; at < rows.length; at++) insert.run(...(rows[at] ?? []));
      };
    },
    prepareDelete: (table, columns) => {
      const conditions = columns.map((name) => `${columnName(table, name)} = ?`);
      const remove = client.prepare(`delete from ${getTableName(table)} where ${conditions.join(" and ")}`);
      return (rows) => async () => {
        for (const row of rows) remove.run(...row);
      };
    },
    prepareDeleteOldest: (table, column, maxRows) => {
      const [name, time, key] = [getTableName(table), columnName(table, column), primaryKeyOf(table)];
      const oldest = `select ${key} from ${name} where ${time} < ? order by ${time} limit ${maxRows}`;
      const remove = client.prepare<unknown, [number]>(`delete from ${name} where (${key}) in (${oldest})`);
      return async (before) => remove.run(before).changes;
    },
    prepareKeySums: <Name extends string>({ table, sums, where }: KeySums<Name>) => {
      const query = db
        .select(orZero(sums))
        .from(table)
        .where(and(eq(table.keyId, sql.placeholder("keyId")), where))
        .prepare();
      return async (keyIds, values) =>
        new Map(keyIds.map((keyId) => [keyId, query.get({ ...values, keyId }) as Record<Name, number>]));
    },
  };
}
