import { type UsageHistory, type KeyHistory, type UsageMetric, metricOf, sumsIn } from "./usage-history.ts";
import { assignColours } from "./key-colours.ts";
import type { TimeSpan } from "./time-range.ts";

/** One key of a legend. The colour is 0 where it is drawn as part of Other. */
export interface RankedKey {
  key: KeyHistory;
  total: number;
  colour: number;
}

/** Keys by what they used in a span, most first, with their colours. Keys without any are left out. */
export function rankKeys(
  history: UsageHistory,
  metric: UsageMetric,
  span: TimeSpan,
  shows: (key: KeyHistory) => boolean,
  before: readonly RankedKey[],
): RankedKey[] {
  const ranked = [...history.values()]
    .filter(shows)
    .map((key) => ({ key, total: metricOf(sumsIn(key, span), metric), sums: sumsIn(key, span) }))
    .filter(({ sums }) => sums.requests > 0)
    .toSorted((a, b) => b.total - a.total || a.key.id - b.key.id);
  const colours = assignColours(
    ranked.map(({ key }) => key.id),
    new Map(before.filter(({ colour }) => colour > 0).map(({ key, colour }) => [key.id, colour])),
  );
  return ranked.map(({ key, total }) => ({ key, total, colour: colours.get(key.id) ?? 0 }));
}
