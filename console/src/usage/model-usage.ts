import { type Counter, counters } from "../lib/counters.ts";
import { csvOf } from "../lib/csv.ts";
import type { Cost } from "../lib/money.ts";
import type { CostRow } from "./cost-queries.ts";

export type UsageSumsRow = Pick<
  CostRow,
  "request_count" | Extract<keyof CostRow, `${string}_tokens`> | "cost" | "cost_is_partial"
>;

const mapCounters = (valueOf: (counter: Counter) => number): Record<Counter, number> =>
  Object.fromEntries(counters.map((counter) => [counter, valueOf(counter)])) as Record<Counter, number>;

const noUsage: UsageSumsRow = {
  request_count: 0,
  ...mapCounters(() => 0),
  cost: null,
  cost_is_partial: false,
};

export function addModelUsage(rows: readonly UsageSumsRow[]): UsageSumsRow {
  return rows.reduce(
    (sum, row) => ({
      request_count: sum.request_count + row.request_count,
      ...mapCounters((counter) => sum[counter] + row[counter]),
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

/** The names of the API: empty, the request named no model; `other`, beyond the names that are kept for a day. */
export function modelLabel(model: string | null): string {
  if (model === "") return "No model named";
  return model === "other" ? "Other models" : (model ?? "");
}

/** Most tokens first; days stay in their order. */
export const mostFirst = (rows: readonly CostRow[]): CostRow[] =>
  rows[0]?.date === null ? rows.toSorted((a, b) => tokensOf(b) - tokensOf(a)) : [...rows];

const tokensOf = (row: UsageSumsRow): number => row.input_tokens + row.output_tokens;

const columns = [
  "date",
  "key_id",
  "key_name",
  "model",
  "tag",
  "owner",
  "request_count",
  ...counters,
  "cost",
  "cost_is_partial",
  "team_id",
  "team_name",
  "user_id",
  "user_name",
] as const;

/** The API's list, with its field names. */
export const modelUsageCsv = (rows: readonly CostRow[]): string => csvOf(columns, rows);
