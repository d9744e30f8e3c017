import { getTableColumns, getTableName, type SQL as Query, sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/bun-sql";
import type { Engine, NumberColumns } from "../engine.ts";
import type { PostgresPool } from "./pool.ts";
import { columnName } from "../tables.ts";
import * as schema from "./schema.ts";

/** Calls may overlap: each transaction has a connection to itself. */
export function createPostgresEngine({ client, transaction, close }: PostgresPool): Engine {
  // Drizzle uses only `unsafe` outside its own transactions (0.45.4), which commit early and are not used here.
  const db = drizzle({ client: client as never, casing: "snake_case" });
  const jsonRows: Engine["jsonRows"] = (array) =>
    sql`json_array_elements(cast(cast(${array} as text) as json)) as value`;
  return {
    db: db as unknown as Engine["db"],
    tables: schema,
    jsonRows,
    prepareInsert: (table, columns, sums) => {
      const values = Object.entries(getTableColumns(table)).map(([name, column]) => {
        const position = columns.indexOf(name);
        return position === -1
          ? sql.raw(`nextval(pg_get_serial_sequence('${getTableName(table)}', '${columnName(table, name)}'))`)
          : sql.raw(`cast(value->>${position} as ${column.getSQLType()})`);
      });
      const select = sql`select ${sql.join(values, sql`, `)} from ${jsonRows(sql.placeholder("rows"))}`;
      const statement = (db as unknown as Engine["db"]).insert(table).select(select);
      const insert = (sums === undefined ? statement : statement.onConflictDoUpdate(addTo(table, sums))).prepare();
      return (rows) => () => insert.execute({ rows: JSON.stringify(rows) });
    },
    async rows<Row extends NumberColumns<Row>>(query: Query) {
      const found = (await db.execute(query)) as Record<string, unknown>[];
      return found.map(numbersOf) as Row[];
    },
    async find<Row>(query: unknown, values: Record<string, unknown>) {
      const rows = await (query as { execute(values: Record<string, unknown>): Promise<Row[]> }).execute(values);
      return rows[0];
    },
    transaction,
    async pipeline(statements) {
      await Promise.all(statements.map((statement) => statement()));
    },
    async lock(name) {
      await db.execute(sql`select pg_advisory_xact_lock(hashtextextended(${name}, ${lockSpace}))`);
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

type Sums = NonNullable<Parameters<Engine["prepareInsert"]>[2]>;

function addTo(table: Parameters<Engine["prepareInsert"]>[0], { key, added }: Sums) {
  const columns = getTableColumns(table);
  const excluded = (name: string): Query => sql.raw(`excluded.${columnName(table, name)}`);
  return {
    target: key.map((name) => columns[name]) as never,
    set: Object.fromEntries(added.map((name) => [name, sql`${columns[name]} + ${excluded(name)}`])),
  };
}

/** Separates the advisory locks of this program from those of others in the same database. */
const lockSpace = 7_655_443;

/** Bun returns 64-bit integers as strings (1.4.5). */
function numbersOf(row: Record<string, unknown>): Record<string, number | null> {
  return Object.fromEntries(
    Object.entries(row).map(([column, value]) => [column, value === null ? null : Number(value)]),
  );
}
