import { getTableColumns, inArray, sql } from "drizzle-orm";
import type { SQLiteTable } from "drizzle-orm/sqlite-core";
import { Histogram, latencyHistograms } from "../../domain/histogram.ts";
import { minutesPerHour } from "../../time/seoul.ts";
import type { Engine } from "../engine/engine.ts";
import { limitHourlyModel } from "../usage/model-names.ts";
import { cleanText, maxModelLength } from "../requests/row.ts";
import type { StoredLatency } from "./contract.ts";

export const hourOf = (minute: number): number => Math.floor(minute / minutesPerHour);

/** Adds latencies to their minutes and hours, within a transaction that others wait for. */
export function prepareLatencies(engine: Engine): (latencies: readonly StoredLatency[]) => Promise<void> {
  const { latencyMinute, latencyHour } = engine.tables;
  const sums = ["requestCount", ...latencyHistograms] as const;
  const addMinutes = prepareMerging(engine, latencyMinute, ["minute", "model", ...sums]);
  const addHours = prepareMerging(engine, latencyHour, ["hour", "model", ...sums]);
  const findModels = prepareFindModels(engine);
  return async (latencies) => {
    if (latencies.length === 0) return;
    const models = await findModels([...new Set(latencies.map(({ minute }) => hourOf(minute)))]);
    const named = latencies.map((one) => ({
      ...one,
      model: limitHourlyModel(models, hourOf(one.minute), cleanText(one.model, maxModelLength)),
    }));
    await addMinutes(named);
    await addHours(named.map(({ minute, ...sum }) => Object.assign(sum, { hour: hourOf(minute) })));
  };
}

function prepareFindModels({ db, tables: { latencyHour }, jsonRows }: Engine) {
  const { hour, model } = latencyHour;
  const query = db
    .select({ hour, model })
    .from(latencyHour)
    .where(inArray(hour, sql`(select cast(value->>0 as bigint) from ${jsonRows(sql.placeholder("hours"))})`))
    .prepare();
  return async (hours: readonly number[]): Promise<Map<number, Set<string>>> => {
    const models = new Map<number, Set<string>>();
    for (const row of await query.execute({ hours: JSON.stringify(hours.map((one) => [one])) })) {
      models.set(row.hour, (models.get(row.hour) ?? new Set()).add(row.model));
    }
    return models;
  };
}

type Row = Readonly<Record<string, string | number>>;

/**
 * Adds rows to those of the same key, a time and a name, within a transaction that others wait for. Here and not in SQL:
 * there are few of them, they are written every few seconds, and their texts are histograms.
 */
export function prepareMerging(
  { db, jsonRows, prepareDelete, prepareInsert, pipeline }: Engine,
  table: SQLiteTable,
  columns: readonly [time: string, name: string, ...sums: string[]],
): (added: readonly Row[]) => Promise<void> {
  const key = columns.slice(0, 2);
  const { [columns[0]]: time, [columns[1]]: name } = getTableColumns(table);
  const find = db
    .select()
    .from(table)
    .where(
      sql`(${time}, ${name}) in (select cast(value->>0 as bigint), value->>1 from ${jsonRows(sql.placeholder("rows"))})`,
    )
    .prepare();
  const remove = prepareDelete(table, key);
  const insert = prepareInsert(table, columns);
  const keyOf = (row: Row): (string | number)[] => key.map((column) => row[column] ?? "");
  return async (added) => {
    if (added.length === 0) return;
    const found = (await find.execute({ rows: JSON.stringify(added.map(keyOf)) })) as Row[];
    const sums = new Map(found.map((row) => [keyOf(row).join(" "), row]));
    for (const row of added) {
      const id = keyOf(row).join(" ");
      sums.set(id, mergeRows(row, sums.get(id), key));
    }
    const values = Array.from(sums.values(), (row) => columns.map((column) => row[column] ?? 0));
    await pipeline([remove(found.map(keyOf)), insert(values)]);
  };
}

/** Numbers are added, and histograms, which are the texts that are not of the key. */
export function mergeRows<R extends Row>(added: R, before: R | undefined, key: readonly string[]): R {
  if (before === undefined) return added;
  const merged = Object.entries(added).map(([column, value]) => {
    const earlier = before[column] ?? 0;
    if (key.includes(column)) return [column, value];
    const sum = typeof value === "number" ? value + Number(earlier) : new Histogram(`${earlier} ${value}`).toText();
    return [column, sum];
  });
  return Object.fromEntries(merged) as R;
}
