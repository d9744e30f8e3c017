import { latestMigration } from "../schema/migrations.ts" with { type: "macro" };
import { and, getTableColumns, getTableName, type SQL as Query, sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/bun-sql";
import type { SQLiteTable } from "drizzle-orm/sqlite-core";
import { type ColumnValues, type Engine, type KeySums, orZero, type TextColumn, groupRows } from "../engine/engine.ts";
import type { PostgresPool } from "./pool.ts";
import { postgresColumns } from "../schema/columns.ts";
import { defineTables } from "../schema/schema.ts";
import { columnName } from "../schema/table-names.ts";

const tables = defineTables(postgresColumns);

const serverSecond = sql`cast(floor(extract(epoch from clock_timestamp())) as bigint)`;

/**
 * Calls may overlap: each transaction has a connection to itself.
 * @param hasClock whether limits go by the database's clock; tests have their own
 */
export function createPostgresEngine({ client, transaction, close }: PostgresPool, hasClock = true): Engine {
  // Drizzle uses only `unsafe` outside its own transactions (0.45.4), which commit early and are not used here.
  const db = drizzle({ client: client as never, casing: "snake_case" });
  const engineDb = db as unknown as Engine["db"];
  return {
    db: engineDb,
    tables,
    jsonRows,
    // No hash is joined by an array.
    byIndex: (column, value) => sql`${column} = any(array[${value}])`,
    anyByIndex,
    ...prepareStatements(client, engineDb),
    async rows<Row extends ColumnValues<Row>>(query: Query, texts: readonly TextColumn<Row>[] = []) {
      const found = (await db.execute(query)) as Record<string, unknown>[];
      const numbers = Object.keys(found[0] ?? {}).filter((column) => !texts.includes(column as TextColumn<Row>));
      // Not new objects: there may be thousands.
      for (const row of found) for (const column of numbers) row[column] = numberOf(row[column]);
      return Array.from(found) as Row[];
    },
    groupsRows: true,
    hasOneWriter: false,
    async find<Row>(query: unknown, values: Record<string, unknown>) {
      const rows = await (query as { execute(values: Record<string, unknown>): Promise<Row[]> }).execute(values);
      return rows[0];
    },
    transaction,
    async savepoint(work) {
      await client.unsafe("savepoint part");
      try {
        return await work();
      } catch (error) {
        await client.unsafe("rollback to savepoint part");
        throw error;
      } finally {
        await client.unsafe("release savepoint part");
      }
    },
    async pipeline(statements) {
      await Promise.all(statements.map((statement) => statement()));
    },
    async lock(name) {
      await db.execute(sql`select pg_advisory_xact_lock(hashtextextended(${name}, ${lockSpace}))`);
    },
    async tryLock(name) {
      const [row] = await db.execute(
        sql`select pg_try_advisory_xact_lock(hashtextextended(${name}, ${lockSpace})) as locked`,
      );
      return (row as { locked: boolean } | undefined)?.locked === true;
    },
    currentSecond: hasClock ? serverSecond : undefined,
    migrations: { table: "tollgate_migrations", latest: latestMigration("postgres-migrations") },
    async callFunction(name, argument) {
      const [row] = (await client.unsafe(`select ${name}(cast(cast($1 as text) as jsonb)) as result`, [
        JSON.stringify(argument),
      ])) as { result: unknown }[];
      return row?.result;
    },
    async describe() {
      const [found] = (await client.unsafe(
        "select current_setting('server_version') as version, pg_database_size(current_database()) as bytes",
      )) as { version: string; bytes: string }[];
      return { kind: "postgresql", version: found?.version ?? "", sizeBytes: Number(found?.bytes ?? 0) };
    },
    close: () => void close(),
  };
}

/** In `jsonb`, as each `->>` of `json` parses the row again. */
const jsonRows: Engine["jsonRows"] = (array) =>
  sql`jsonb_array_elements(cast(cast(${array} as text) as jsonb)) as value`;

const anyByIndex: Engine["anyByIndex"] = (column, query) => sql`${column} = any(array(${query}))`;

/** The statements that take any number of rows or keys as one parameter, and the one that deletes so many. */
function prepareStatements(
  client: PostgresPool["client"],
  db: Engine["db"],
): Pick<Engine, "prepareInsert" | "prepareDelete" | "prepareDeleteOldest" | "prepareKeySums"> {
  return {
    prepareInsert: (table, columns, sums, computed = {}) => {
      const values = Object.entries(getTableColumns(table)).map(([name, column]) => {
        const position = columns.indexOf(name);
        if (computed[name] !== undefined) return computed[name];
        if (position !== -1) return sql.raw(`cast(value->>${position} as ${column.getSQLType()})`);
        return sql.raw(`nextval(pg_get_serial_sequence('${getTableName(table)}', '${columnName(table, name)}'))`);
      });
      const select = sql`select ${sql.join(values, sql`, `)} from ${jsonRows(sql.placeholder("rows"))}`;
      const statement = db.insert(table).select(select);
      const insert = onConflict(statement, table, sums).prepare();
      return (rows) => {
        const given = JSON.stringify(sums === undefined ? rows : groupRows(rows, sums.key.length));
        return () => insert.execute({ rows: given });
      };
    },
    prepareDelete: (table, columns) => {
      const all = getTableColumns(table);
      const values = columns.map((name, position) =>
        sql.raw(`cast(value->>${position} as ${all[name]?.getSQLType()})`),
      );
      const remove = db
        .delete(table)
        .where(
          sql`(${sql.join(
            columns.map((name) => all[name]),
            sql`, `,
          )}) in (select ${sql.join(values, sql`, `)} from ${jsonRows(sql.placeholder("rows"))})`,
        )
        .prepare();
      return (rows) => () => remove.execute({ rows: JSON.stringify(rows) });
    },
    prepareDeleteOldest: (table, column) => {
      const [name, time] = [getTableName(table), columnName(table, column)];
      // An array: it is read once, and each row then found by its place.
      const statement = `delete from ${name} where ctid = any(array(
        select ctid from ${name} where ${time} < $1 order by ${time} limit $2)) returning 1`;
      return async (before, maxRows) => ((await client.unsafe(statement, [before, maxRows])) as unknown[]).length;
    },
    prepareKeySums: <Name extends string>({ table, sums, where }: KeySums<Name>) => {
      const zero = Object.fromEntries(Object.keys(sums).map((name) => [name, 0])) as Record<Name, number>;
      const keyIds = sql`select cast(value #>> '{}' as bigint) from ${jsonRows(sql.placeholder("keyIds"))}`;
      const query = db
        .select({ keyId: table.keyId, ...orZero(sums) })
        .from(table)
        .where(and(anyByIndex(table.keyId, keyIds), where))
        .groupBy(table.keyId)
        .prepare();
      return async (ids, values) => {
        const rows = await query.execute({ ...values, keyIds: JSON.stringify(ids) });
        const found = new Map(rows.map(({ keyId, ...row }) => [Number(keyId), row as Record<Name, number>]));
        return new Map(ids.map((id) => [id, found.get(id) ?? { ...zero }]));
      };
    },
  };
}

type Insert = ReturnType<ReturnType<Engine["db"]["insert"]>["select"]>;
function onConflict(
  insert: Insert,
  table: SQLiteTable,
  sums: Parameters<Engine["prepareInsert"]>[2],
): Pick<Insert, "prepare"> {
  if (sums === undefined) return insert;
  const columns = getTableColumns(table);
  const target = sums.key.map((name) => columns[name]) as never;
  if (sums.added.length === 0) return insert.onConflictDoNothing({ target });
  const excluded = (name: string): Query => sql.raw(`excluded.${columnName(table, name)}`);
  const set = sums.added.map((name) => [name, sql`${columns[name]} + ${excluded(name)}`]);
  return insert.onConflictDoUpdate({ target, set: Object.fromEntries(set) });
}

/** Separates the advisory locks of this program from those of others in the same database. */
const lockSpace = 7_655_443;

/** Bun returns 64-bit integers as strings (1.4.5). */
const numberOf = (value: unknown): number | null => (value === null ? null : Number(value));
