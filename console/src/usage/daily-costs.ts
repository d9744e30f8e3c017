import type { ModelUsage } from "./queries.ts";
import { addCosts } from "./model-usage.ts";
import type { Cost } from "../lib/money.ts";
import { type KeySelection, matchesSelection } from "./usage-buckets.ts";

export interface CostsByLine {
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
