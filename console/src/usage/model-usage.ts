import { type Counter, counters } from "../lib/counters.ts";
import { csv } from "../lib/csv.ts";
import type { Cost } from "../lib/money.ts";
import type { ModelUsage, ModelUsageRow } from "./queries.ts";
import { type KeySelection, matchesSelection } from "./usage-buckets.ts";

export type UsageSumsRow = Pick<
  ModelUsageRow,
  "request_count" | Extract<keyof ModelUsageRow, `${string}_tokens`> | "cost" | "cost_is_partial"
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
  rows: readonly (UsageSumsRow &
    Partial<Record<"date" | "key_name" | "model", string | null>> & { key_id?: number | null })[],
): string {
  const header = ["date", "key_id", "key_name", "model", "request_count", ...counters, "cost", "cost_is_partial"];
  return csv(
    header,
    rows.map((row) => [
      row.date ?? "",
      row.key_id ?? "",
      row.key_name ?? "",
      row.model ?? "",
      row.request_count,
      ...counters.map((counter) => row[counter]),
      row.cost ?? "",
      String(row.cost_is_partial),
    ]),
  );
}

interface CostsByLine {
  days: Map<string, Cost>;
  /** By `lineId`. */
  keys: Map<string, Cost>;
}

export const lineId = (date: string, keyId: number): string => `${date} ${keyId}`;

/** The costs of days and of their keys; undefined if there are more rows than the API lists. */
export function costsByLine(
  usage: Pick<ModelUsage, "rows" | "more"> | undefined,
  selection: KeySelection,
): CostsByLine | undefined {
  if (usage === undefined || usage.more) return undefined;
  const costs: CostsByLine = { days: new Map(), keys: new Map() };
  for (const { bucket_start: start, key_id: keyId, key_name: name, ...row } of usage.rows) {
    if (keyId !== null && !matchesSelection(selection, keyId, name ?? "")) continue;
    const date = start?.slice(0, 10) ?? "";
    addTo(costs.days, date, row);
    if (keyId !== null) addTo(costs.keys, lineId(date, keyId), row);
  }
  return costs;
}

function addTo(costs: Map<string, Cost>, id: string, added: Cost): void {
  const before = costs.get(id);
  costs.set(id, addCosts(before === undefined ? [added] : [before, added]));
}
