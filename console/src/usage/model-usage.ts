import { csv } from "../lib/csv.ts";
import type { ModelUsageRow } from "../insight-queries.ts";
import type { Cost } from "../lib/money.ts";

export type UsageSumsRow = Pick<
  ModelUsageRow,
  | "request_count"
  | "input_tokens"
  | "cached_input_tokens"
  | "output_tokens"
  | "reasoning_tokens"
  | "cost"
  | "cost_is_partial"
>;

const noUsage: UsageSumsRow = {
  request_count: 0,
  input_tokens: 0,
  cached_input_tokens: 0,
  output_tokens: 0,
  reasoning_tokens: 0,
  cost: null,
  cost_is_partial: false,
};

export function addModelUsage(rows: readonly UsageSumsRow[]): UsageSumsRow {
  return rows.reduce(
    (sum, row) => ({
      request_count: sum.request_count + row.request_count,
      input_tokens: sum.input_tokens + row.input_tokens,
      cached_input_tokens: sum.cached_input_tokens + row.cached_input_tokens,
      output_tokens: sum.output_tokens + row.output_tokens,
      reasoning_tokens: sum.reasoning_tokens + row.reasoning_tokens,
      ...addCosts([sum, { ...row, cost_is_partial: row.cost_is_partial || lacksPrice(row) }]),
    }),
    noUsage,
  );
}

/** Without any price the sum lacks this row, unless it has no tokens that could cost. */
const lacksPrice = ({ cost, input_tokens: input, output_tokens: output }: UsageSumsRow): boolean =>
  cost === null && input + output > 0;

export const addCosts = (costs: readonly Cost[]): Cost =>
  costs.reduce<Cost>(
    (sum, { cost, cost_is_partial: isPartial }) => ({
      cost: cost === null ? sum.cost : (sum.cost ?? 0) + cost,
      cost_is_partial: sum.cost_is_partial || isPartial,
    }),
    { cost: null, cost_is_partial: false },
  );

/** One row for each day, the latest first. */
export function usageByDay(rows: readonly ModelUsageRow[]): (UsageSumsRow & { date: string })[] {
  const byDay = new Map<string, ModelUsageRow[]>();
  for (const row of rows) {
    const date = row.bucket_start?.slice(0, 10) ?? "";
    byDay.set(date, [...(byDay.get(date) ?? []), row]);
  }
  const days = Array.from(byDay, ([date, ofDay]) => ({ date, ...addModelUsage(ofDay) }));
  return days.toSorted((a, b) => b.date.localeCompare(a.date));
}

/** The names of the API: empty, the request named no model; `other`, beyond the names that are kept for a day. */
export function modelLabel(model: string | null): string {
  if (model === "") return "No model named";
  return model === "other" ? "Other models" : (model ?? "");
}

/** The API's list, with its field names. */
export function modelUsageCsv(
  rows: readonly (UsageSumsRow & Partial<Record<"date" | "key_name" | "model", string | null>>)[],
): string {
  const header = [
    "date",
    "key_name",
    "model",
    "request_count",
    "input_tokens",
    "cached_input_tokens",
    "output_tokens",
    "reasoning_tokens",
    "cost",
    "cost_is_partial",
  ];
  return csv(
    header,
    rows.map((row) => [
      row.date ?? "",
      row.key_name ?? "",
      row.model ?? "",
      row.request_count,
      row.input_tokens,
      row.cached_input_tokens,
      row.output_tokens,
      row.reasoning_tokens,
      row.cost ?? "",
      String(row.cost_is_partial),
    ]),
  );
}
