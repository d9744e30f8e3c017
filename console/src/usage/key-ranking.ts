import type { GroupId, ListedKey, UsageBuckets } from "./usage-buckets.ts";
import { metricOf } from "./usage-sums.ts";

/** A key with its total in a chart. Colour 0: drawn as part of Other. */
export interface RankedKey {
  key: ListedKey;
  total: number;
  colour: number;
}

/**
 * The listed keys of a chart, or what it is by, highest total first.
 * @param before the previous return value, whose colours are kept
 */
export function rankKeys(buckets: UsageBuckets | undefined, before: readonly RankedKey[]): RankedKey[] {
  if (buckets === undefined) return [];
  const colours = assignColours(
    [...buckets.series.keys()],
    new Map(before.filter(({ colour }) => colour > 0).map(({ key, colour }) => [key.id, colour])),
  );
  return Array.from(buckets.keys.values(), (key) => ({
    key,
    total: metricOf(key.sums, buckets.metric),
    colour: colours.get(key.id) ?? 0,
  }));
}

/** How many keys get their own colour; the chart draws the rest as Other. */
export const colourCount = 8;

/**
 * Colour numbers from 1 for the first `colourCount` ids. An id keeps its previous colour, so that bars do not change
 * colour when a refresh changes their order.
 * @param before the previous return value
 */
function assignColours(ids: readonly GroupId[], before: ReadonlyMap<GroupId, number>): Map<GroupId, number> {
  const colours = new Map<GroupId, number>();
  for (const id of ids.slice(0, colourCount)) {
    const kept = before.get(id);
    if (kept !== undefined) colours.set(id, kept);
  }
  const free = Array.from({ length: colourCount }, (_, index) => index + 1).filter(
    (colour) => ![...colours.values()].includes(colour),
  );
  for (const id of ids.slice(0, colourCount)) {
    if (!colours.has(id)) colours.set(id, free.shift() ?? colourCount);
  }
  return colours;
}
