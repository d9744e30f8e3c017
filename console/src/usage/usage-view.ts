import { plural } from "../lib/format.ts";
import { colourCount } from "./key-ranking.ts";

/** How the usage chart shows what it is by. */
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

/** What is drawn together; nothing has this id. */
export const otherId = -1;

export const otherLabel = (keyCount: number, kind: string): string => `Other (${plural(keyCount, kind)})`;
