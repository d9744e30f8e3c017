import { csv } from "../lib/csv.ts";
import type { Cost } from "../lib/money.ts";
import type { CostRow } from "./cost-queries.ts";
import { sumsOf, type UsageFields, type UsageSums } from "./usage-sums.ts";

/** One day, summed over keys or for a single key. */
export interface DailyUsageLine extends UsageSums {
  date: string;
  /** Undefined: summed over keys. */
  key: { id: number; name: string } | undefined;
  cost: Cost;
}

type Row = Pick<CostRow, "date" | "key_id" | "key_name" | keyof UsageFields | keyof Cost>;

export const lineOf = (row: Row): DailyUsageLine => ({
  date: row.date ?? "",
  key: row.key_id === null ? undefined : { id: row.key_id, name: row.key_name ?? "" },
  ...sumsOf(row),
  cost: { cost: row.cost, cost_is_partial: row.cost_is_partial },
});

/** In the order of the API. @param added replace those of the same day and key */
export function mergeLines(lines: readonly DailyUsageLine[], added: readonly DailyUsageLine[]): DailyUsageLine[] {
  const merged = new Map([...lines, ...added].map((line) => [`${line.date} ${line.key?.id}`, line]));
  return [...merged.values()].toSorted((a, b) => b.date.localeCompare(a.date) || (a.key?.id ?? 0) - (b.key?.id ?? 0));
}

/**
 * @param perKey adds the key columns
 * @param withCosts adds the cost columns, with the names of the API
 */
export function dailyUsageCsv(lines: readonly DailyUsageLine[], perKey: boolean, withCosts: boolean): string {
  const keyColumns = perKey ? ["key_id", "key_name"] : [];
  const costColumns = withCosts ? ["cost", "cost_is_partial"] : [];
  const header = ["date", ...keyColumns, "request_count", "input_tokens", "output_tokens", ...costColumns];
  const rows = lines.map(({ date, key, requests, input, output, cost }) => {
    const keyCells = key === undefined ? [] : [key.id, key.name];
    const costCells = withCosts ? [cost.cost ?? "", String(cost.cost_is_partial)] : [];
    return [date, ...keyCells, requests, input, output, ...costCells];
  });
  return csv(header, rows);
}
