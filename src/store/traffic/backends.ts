import { sql } from "drizzle-orm";
import { backendCountNames } from "../../domain/backends.ts";
import { addEncoded, decodeHistogram, encodeSum } from "../../domain/histogram.ts";
import type { Engine } from "../engine/engine.ts";
import type { BackendFigures, StoredBackend } from "./contract.ts";

const columns = ["minute", "backend", ...backendCountNames, "firstByte"] as const;

/** Adds to the minutes of backends, within a transaction that others wait for. There are few: histograms are merged here. */
export function prepareBackends({
  db,
  jsonRows,
  prepareInsert,
  prepareDelete,
  pipeline,
  tables: { backendMinute: table },
}: Engine): (added: readonly StoredBackend[]) => Promise<void> {
  const rows = jsonRows(sql.placeholder("rows"));
  const find = db
    .select()
    .from(table)
    .where(sql`(${table.minute}, ${table.backend}) in (select cast(value->>0 as bigint), value->>1 from ${rows})`)
    .prepare();
  const remove = prepareDelete(table, ["minute", "backend"]);
  const insert = prepareInsert(table, columns);

  return async (added) => {
    if (added.length === 0) return;
    const names = added.map(({ minute, backend }): [number, string] => [minute, backend]);
    const found = await find.execute({ rows: JSON.stringify(names) });
    const before = new Map(found.map((row) => [idOf(row), row]));
    const sums = added.map((one) => add(one, before.get(idOf(one))));
    await pipeline([remove(names), insert(sums.map((sum) => columns.map((name) => sum[name])))]);
  };
}

const idOf = ({ minute, backend }: Pick<StoredBackend, "minute" | "backend">): string => `${minute} ${backend}`;

function add(added: StoredBackend, before: StoredBackend | undefined): StoredBackend {
  if (before === undefined) return added;
  const firstByte = decodeHistogram(before.firstByte);
  addEncoded(firstByte, added.firstByte);
  const sums = backendCountNames.map((name) => [name, before[name] + added[name]] as const);
  return { ...added, ...Object.fromEntries(sums), firstByte: encodeSum(firstByte) };
}

/** @param to exclusive */
export async function sumBackends(
  { rows, tables: { backendMinute: table } }: Engine,
  from: number,
  to: number,
): Promise<BackendFigures[]> {
  const found = await rows<StoredBackend>(
    sql`select ${sql.join(
      columns.map((name) => sql`${table[name]} as ${sql.identifier(name)}`),
      sql`, `,
    )} from ${table} where ${table.minute} >= ${from} and ${table.minute} < ${to} order by ${table.backend}`,
    ["backend", "firstByte"],
  );
  const sums = new Map<string, StoredBackend>();
  for (const row of found) sums.set(row.backend, add(row, sums.get(row.backend)));
  return Array.from(sums.values(), ({ minute: _minute, ...figures }) => figures);
}
