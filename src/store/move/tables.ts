import type { Database } from "bun:sqlite";
import { moveMarker } from "../postgres/move-marker.ts";
import type { QueryClient } from "../postgres/pool.ts";
import { derivedTable } from "../schema/table-names.ts";
import { StorageError } from "../storage-error.ts";

export interface MovedTable {
  name: string;
  /** The target makes its rows by itself, so that they are compared and not copied. */
  isDerived: boolean;
  /** With the types of the target. */
  columns: readonly Column[];
}

interface Column {
  name: string;
  type: string;
}

/** A sum of large ids overflows 64 bits; the sums of their quotients and remainders do not. */
const divisor = 1_000_000_007;

/** The checksums of a column by its type, as SQL for each engine. */
const checksums: Readonly<
  Record<string, (column: string) => readonly (readonly [sqlite: string, postgres: string])[]>
> = {
  bigint: (column) => [
    [`sum(${column} / ${divisor})`, `sum(${column} / ${divisor})`],
    [`sum(${column} % ${divisor})`, `sum(${column} % ${divisor})`],
  ],
  "double precision": (column) => [[`sum(${column})`, `sum(${column})`]],
  boolean: (column) => [[`sum(${column})`, `sum(cast(${column} as integer))`]],
  text: (column) => [[`sum(length(cast(${column} as blob)))`, `sum(octet_length(${column}))`]],
};

/** @throws StorageError if the two databases do not have the same tables and columns */
export async function listTables(source: Database, target: QueryClient): Promise<MovedTable[]> {
  const found = (await target.unsafe(
    `select table_name as "table", column_name as name, data_type as type from information_schema.columns
      where table_schema = current_schema() and table_name <> 'tollgate_migrations' order by 1, ordinal_position`,
  )) as (Column & { table: string })[];
  const columnsOf = (table: string) => found.filter((column) => column.table === table);
  return source
    .query<{ name: string }, []>(
      "select name from sqlite_schema where type = 'table' and name not like 'sqlite~_%' escape '~' and name not in ('__drizzle_migrations', 'staged_flushes') order by name",
    )
    .all()
    .map(({ name }) => {
      const columns = columnsOf(name);
      const own = source.query<{ name: string }, [string]>("select name from pragma_table_info(?)").all(name);
      if (namesOf(own) !== namesOf(columns))
        throw new StorageError(`the table ${name} has other columns in the target`);
      return { name, isDerived: name === derivedTable, columns };
    });
}

const namesOf = (columns: readonly { name: string }[]): string =>
  columns
    .map(({ name }) => name)
    .toSorted()
    .join();

/** @returns `table.column` of the first column whose value count or checksum differs; undefined if none does */
export async function findDifference(
  { name, columns }: MovedTable,
  source: Database,
  target: QueryClient,
): Promise<string | undefined> {
  const compared = columns.flatMap((column) => [
    { column, isSame: isEqual, sqlite: asText(`count(${column.name})`), postgres: asText(`count(${column.name})`) },
    ...(checksums[column.type]?.(column.name) ?? []).map(([sqlite, postgres]) => ({
      column,
      isSame: column.type === "double precision" ? isAlmostEqual : isEqual,
      sqlite: asText(sqlite),
      postgres: asText(postgres),
    })),
  ]);
  const [own] = source.query(`select ${compared.map(({ sqlite }) => sqlite).join()} from ${name}`).values();
  const marked = name === "settings" ? ` where name <> '${moveMarker}'` : "";
  const [copied] = (await target
    .unsafe(`select ${compared.map(({ postgres }) => postgres).join()} from ${name}${marked}`)
    .values()) as unknown[][];
  const different = compared.find(({ isSame }, index) => !isSame(own?.[index], copied?.[index]));
  return different && `${name}.${different.column.name}`;
}

/** A sum beyond 2^53 would lose its last digits as a number. */
const asText = (sum: string): string => `cast(${sum} as text)`;

/** Null without a value. */
const isEqual = (a: unknown, b: unknown): boolean => a === b;

/** A floating-point sum depends on the order of its terms. */
const isAlmostEqual = (a: unknown, b: unknown): boolean =>
  Math.abs(Number(a) - Number(b)) <= 1e-9 * Math.max(Math.abs(Number(a)), Math.abs(Number(b)));
