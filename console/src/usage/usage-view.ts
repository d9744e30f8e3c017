import { plural } from "../lib/format.ts";
import { colourCount } from "./key-ranking.ts";

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

/** The choices of a control that selects a view. */
export const usageViewOptions = Object.entries(usageViews).map(([value, { label }]) => ({
  value: value as UsageView,
  label,
}));

/** Other, in the list of hidden keys; no key has this id. */
export const otherId = 0;

export const otherLabel = (keyCount: number): string => `Other (${plural(keyCount, "key")})`;
