import { csv } from "./csv.ts";
import { addSums, type UsageSums } from "./usage-history.ts";

/** A row of `GET /api/usage/daily`. */
export interface DailyUsageRow {
  date: string;
  key_id: number;
  key_name: string;
  request_count: number;
  input_tokens: number;
  output_tokens: number;
}

/** Rows by day, in the API's order. A Map for the same reason as `UsageHistory`. */
export type DailyUsage = ReadonlyMap<string, readonly DailyUsageRow[]>;

export function rowsByDay(rows: readonly DailyUsageRow[]): DailyUsage {
  const byDay = new Map<string, DailyUsageRow[]>();
  for (const row of rows) {
    const day = byDay.get(row.date);
    if (day === undefined) byDay.set(row.date, [row]);
    else day.push(row);
  }
  return byDay;
}

/** One day, summed over keys or for a single key. */
export interface DailyUsageLine extends UsageSums {
  date: string;
  /** Undefined: summed over keys. */
  key: { id: number; name: string } | undefined;
}

export const sumsOfRow = (row: DailyUsageRow): UsageSums => ({
  requests: row.request_count,
  input: row.input_tokens,
  output: row.output_tokens,
});

/** The lines of the daily table over the rows that match: one per day, or one per day and key. */
export function dailyUsageLines(
  usage: DailyUsage,
  perKey: boolean,
  matches: (row: DailyUsageRow) => boolean,
): DailyUsageLine[] {
  return [...usage].flatMap(([date, rows]): DailyUsageLine[] => {
    const matching = rows.filter(matches);
    if (perKey) {
      return matching.map((row) => ({ date, key: { id: row.key_id, name: row.key_name }, ...sumsOfRow(row) }));
    }
    return matching.length === 0 ? [] : [{ date, key: undefined, ...addSums(matching.map(sumsOfRow)) }];
  });
}

/** @param perKey adds the key columns */
export function dailyUsageCsv(lines: readonly DailyUsageLine[], perKey: boolean): string {
  const keyColumns = perKey ? ["key_id", "key_name"] : [];
  const header = ["date", ...keyColumns, "request_count", "input_tokens", "output_tokens"];
  const rows = lines.map(({ date, key, requests, input, output }) =>
    key === undefined ? [date, requests, input, output] : [date, key.id, key.name, requests, input, output],
  );
  return csv(header, rows);
}
