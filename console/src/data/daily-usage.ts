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

/** By day, in the order they came: a Map for the reason that `History` is one. */
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

/** A day's sums over some of the keys, or one key's row of a day. */
export interface DailyUsageLine extends UsageSums {
  date: string;
  key: { id: number; name: string } | undefined;
}

export const sumsOfRow = (row: DailyUsageRow): UsageSums => ({
  requests: row.request_count,
  input: row.input_tokens,
  output: row.output_tokens,
});

/** What the daily table shows: of the keys that `shows` lets through, a line per day, or per day and key. */
export function dailyUsageLines(
  usage: DailyUsage,
  perKey: boolean,
  matches: (row: DailyUsageRow) => boolean,
): DailyUsageLine[] {
  return [...usage].flatMap(([date, rows]): DailyUsageLine[] => {
    const shown = rows.filter(matches);
    if (perKey) {
      return shown.map((row) => ({ date, key: { id: row.key_id, name: row.key_name }, ...sumsOfRow(row) }));
    }
    return shown.length === 0 ? [] : [{ date, key: undefined, ...addSums(shown.map(sumsOfRow)) }];
  });
}

/** The lines as they are shown: with key columns where each is of one key. */
export function dailyUsageCsv(lines: readonly DailyUsageLine[], perKey: boolean): string {
  const keyColumns = perKey ? ["key_id", "key_name"] : [];
  const header = ["date", ...keyColumns, "request_count", "input_tokens", "output_tokens"];
  const rows = lines.map(({ date, key, requests, input, output }) =>
    key === undefined ? [date, requests, input, output] : [date, key.id, key.name, requests, input, output],
  );
  return csv(header, rows);
}
