import { assignColours } from "./key-colours.ts";
import { type ListedKey, type UsageChartData } from "./usage-buckets.ts";
import { metricOf } from "./usage-sums.ts";

/** A key with its total in a chart. Colour 0: drawn as part of Other. */
export interface RankedKey {
  key: ListedKey;
  total: number;
  colour: number;
}

/**
 * The listed keys of a chart, highest total first, hidden ones too.
 * @param before the previous return value, whose colours are kept
 */
export function rankKeys(chart: UsageChartData | undefined, before: readonly RankedKey[]): RankedKey[] {
  if (chart === undefined) return [];
  const colours = assignColours(
    [...chart.series.keys()],
    new Map(before.filter(({ colour }) => colour > 0).map(({ key, colour }) => [key.id, colour])),
  );
  return Array.from(chart.keys.values(), (key) => ({
    key,
    total: metricOf(key.sums, chart.metric),
    colour: colours.get(key.id) ?? 0,
  }));
}
