import { assignColours } from "./key-colours.ts";
import type { TimeSpan } from "./time-range.ts";
import { type KeyHistory, metricOf, sumsIn, type UsageHistory, type UsageMetric } from "./usage-history.ts";

/** A key with its total in a span. Colour 0: drawn as part of Other. */
export interface RankedKey {
  key: KeyHistory;
  total: number;
  colour: number;
}

/**
 * The matching keys with requests in a span, highest total first.
 * @param before the previous return value, whose colours are kept
 */
export function rankKeys(
  history: UsageHistory,
  metric: UsageMetric,
  span: TimeSpan,
  matches: (key: KeyHistory) => boolean,
  before: readonly RankedKey[],
): RankedKey[] {
  const ranked = [...history.values()]
    .filter(matches)
    .map((key) => ({ key, sums: sumsIn(key, span) }))
    .filter(({ sums }) => sums.requests > 0)
    .map(({ key, sums }) => ({ key, total: metricOf(sums, metric) }))
    .toSorted((a, b) => b.total - a.total || a.key.id - b.key.id);
  const colours = assignColours(
    ranked.map(({ key }) => key.id),
    new Map(before.filter(({ colour }) => colour > 0).map(({ key, colour }) => [key.id, colour])),
  );
  return ranked.map(({ key, total }) => ({ key, total, colour: colours.get(key.id) ?? 0 }));
}
