import { colourCount } from "./key-colours.ts";
import type { RankedKey } from "./key-ranking.ts";

/** How the usage chart shows its keys. */
export const usageViews = {
  stacked: { label: "Stacked", topCount: colourCount },
  top5: { label: "Top 5", topCount: 5 },
  lines: { label: "Lines", topCount: 5 },
  share: { label: "Share", topCount: colourCount },
} as const;

export type UsageView = keyof typeof usageViews;

export const isUsageView = (text: unknown): text is UsageView =>
  typeof text === "string" && Object.hasOwn(usageViews, text);

/** For a control that selects a view. */
export const usageViewOptions = Object.entries(usageViews).map(([value, { label }]) => ({
  value: value as UsageView,
  label,
}));

/** The keys as a view draws them: those after its top ones as part of Other. */
export function rankedIn(view: UsageView, ranked: readonly RankedKey[]): RankedKey[] {
  const { topCount } = usageViews[view];
  let top = 0;
  return ranked.map((one) => (one.colour > 0 && ++top > topCount ? { ...one, colour: 0 } : one));
}

/** Other, in the list of hidden keys; no key has this id. */
export const otherId = 0;

/** Whether the chart leaves a key out: it is hidden itself, or as part of Other. */
export const isHidden = ({ key, colour }: RankedKey, hiddenIds: ReadonlySet<number>): boolean =>
  hiddenIds.has(key.id) || (colour === 0 && hiddenIds.has(otherId));
