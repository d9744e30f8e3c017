import { csv } from "../lib/csv.ts";
import type { Cost } from "../lib/money.ts";
import { sumsOf, type UsageFields, type UsageSums } from "./usage-sums.ts";

/** A row of `GET /api/usage/daily`. */
export interface DailyUsageRow extends UsageFields {
  date: string;
  key_id: number;
  key_name: string;
}

/** One day, summed over keys or for a single key. */
export interface DailyUsageLine extends UsageSums {
  date: string;
  /** Undefined: summed over keys. */
  key: { id: number; name: string } | undefined;
  /** What the key cost on its day, if that is known. */
  cost?: Cost | undefined;
}

/** A key on a day. */
export const lineId = (date: string, keyId: number): string => `${date} ${keyId}`;

type Columns = { date: string[] } & { [Field in keyof UsageFields]: number[] };

/** The sums of the days. */
export const linesByDay = (days: Columns): DailyUsageLine[] =>
  days.date.map((date, index) => ({ date, key: undefined, ...sumsAt(days, index) }));

/**
 * A page of the days by key.
 * @param costs by `lineId`
 */
export function linesByDayAndKey(
  rows: Columns & { key_id: number[] },
  names: { key_id: number[]; name: string[] },
  costs?: ReadonlyMap<string, Cost>,
): DailyUsageLine[] {
  const nameOf = new Map(names.key_id.map((id, index) => [id, names.name[index] ?? ""]));
  return rows.date.map((date, index) => {
    const id = rows.key_id[index] ?? 0;
    return {
      date,
      key: { id, name: nameOf.get(id) ?? "" },
      ...sumsAt(rows, index),
      cost: costs?.get(lineId(date, id)),
    };
  });
}

const sumsAt = (columns: Columns, index: number): UsageSums => ({
  requests: columns.request_count[index] ?? 0,
  input: columns.input_tokens[index] ?? 0,
  output: columns.output_tokens[index] ?? 0,
});

export const lineOfRow = (row: DailyUsageRow, costs?: ReadonlyMap<string, Cost>): DailyUsageLine => ({
  cost: costs?.get(lineId(row.date, row.key_id)),
  date: row.date,
  key: { id: row.key_id, name: row.key_name },
  ...sumsOf(row),
});

/**
 * @param perKey adds the key columns
 * @param costOf adds the cost columns, with the names of the API; a cost that is not known is empty
 */
export function dailyUsageCsv(
  lines: readonly DailyUsageLine[],
  perKey: boolean,
  costOf?: (line: DailyUsageLine) => Cost | undefined,
): string {
  const keyColumns = perKey ? ["key_id", "key_name"] : [];
  const costColumns = costOf === undefined ? [] : ["cost", "cost_is_partial"];
  const header = ["date", ...keyColumns, "request_count", "input_tokens", "output_tokens", ...costColumns];
  const rows = lines.map((line) => {
    const { date, key, requests, input, output } = line;
    const keyCells = key === undefined ? [] : [key.id, key.name];
    return [date, ...keyCells, requests, input, output, ...(costOf === undefined ? [] : costCells(costOf(line)))];
  });
  return csv(header, rows);
}

const costCells = (cost: Cost | undefined): (string | number)[] =>
  cost === undefined ? ["", ""] : [cost.cost ?? "", String(cost.cost_is_partial)];
