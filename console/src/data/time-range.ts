import { ceilToStep, dayMs, floorToStep, hourMs, minuteMs, parseSeoulMinute, seoulMinute } from "./seoul-time.ts";

/** How far back a chart reaches. */
export const rangePresets = {
  "1h": { label: "1 h", spanMs: hourMs },
  "6h": { label: "6 h", spanMs: 6 * hourMs },
  "24h": { label: "24 h", spanMs: dayMs },
  "7d": { label: "7 d", spanMs: 7 * dayMs },
  "30d": { label: "30 d", spanMs: 30 * dayMs },
} as const;

export type RangePreset = keyof typeof rangePresets;

/** Epoch milliseconds; `to` is exclusive. */
export interface TimeSpan {
  from: number;
  to: number;
}

/** What the URL selects: a preset, and possibly a zoom into it. */
export interface TimeRange {
  preset: RangePreset;
  zoom: TimeSpan | undefined;
}

/** The parameters of the API's histories. */
export interface BucketQuery {
  days: number;
  bucketMinutes: number;
}

type SearchParameters = Readonly<Record<string, string | string[] | undefined>>;

const isPreset = (text: unknown): text is RangePreset => typeof text === "string" && Object.hasOwn(rangePresets, text);

/** Reads a time range from the URL; invalid parameters are ignored. */
export function readTimeRange(parameters: SearchParameters, defaultPreset: RangePreset): TimeRange {
  const from = parseSeoulMinute(String(parameters["from"]));
  const to = parseSeoulMinute(String(parameters["to"]));
  return {
    preset: isPreset(parameters["range"]) ? parameters["range"] : defaultPreset,
    zoom: from !== undefined && to !== undefined && from < to ? { from, to } : undefined,
  };
}

export const zoomParameters = (zoom: TimeSpan | undefined): { from: string | undefined; to: string | undefined } => ({
  from: zoom && seoulMinute(zoom.from),
  to: zoom && seoulMinute(zoom.to),
});

/** How many days the API's histories cover. */
export const maxDays = 30;

/** The span before it is extended to whole buckets. A zoom from a URL may be wider than the API's histories. */
export function chosenSpan({ preset, zoom }: TimeRange, now: number): TimeSpan {
  // A zoom into the future has no data.
  if (zoom === undefined || zoom.from >= now) return { from: now - rangePresets[preset].spanMs, to: now };
  const to = Math.min(zoom.to, now);
  return { from: Math.max(zoom.from, to - maxDays * dayMs), to };
}

/** Narrower bars blur and are slow to draw. */
const minBarPx = 3;

/** The width of a bar in milliseconds: the fewest whole buckets that are at least `minBarPx` wide. */
export function barStep(span: TimeSpan, bucketMs: number, widthPx: number): number {
  const buckets = (span.to - span.from) / bucketMs;
  return Math.max(1, Math.ceil(buckets / maxBarsIn(widthPx))) * bucketMs;
}

const maxBarsIn = (widthPx: number): number => Math.max(1, Math.floor(widthPx / minBarPx));

/** All of them divide a day, to which the server aligns buckets. */
const bucketWidths = [1, 2, 3, 5, 10, 15, 20, 30, 60, 120, 180, 240, 360, 720, 1440];

/** The narrowest bucket width that is at least this wide. */
const bucketOf = (minutes: number): number => bucketWidths.find((width) => width >= minutes) ?? 1440;

/**
 * The API's histories end now, so a zoom into a distant hour fetches everything since. The server sends and the browser
 * parses this many points without a noticeable delay.
 */
const maxPoints = 200_000;

/**
 * As many buckets as the chart draws bars.
 * @param keyCount how many points a bucket may have
 */
export function bucketQuery(timeRange: TimeRange, now: number, keyCount: number, plotWidthPx: number): BucketQuery {
  const { from, to } = chosenSpan(timeRange, now);
  const bucketIn = (spanMs: number): number => bucketOf(spanMs / minuteMs / maxCompleteBars(plotWidthPx));
  const days = Math.min(maxDays, Math.max(1, Math.ceil((now - from) / dayMs)));
  const bucketMinutes = bucketIn(to - from);
  if (timeRange.zoom === undefined) return { days, bucketMinutes };
  const pointMinutes = bucketOf((days * 1440 * Math.max(1, keyCount)) / maxPoints);
  const presetMinutes = bucketIn(rangePresets[timeRange.preset].spanMs);
  return { days, bucketMinutes: Math.max(bucketMinutes, Math.min(pointMinutes, presetMinutes)) };
}

/** A span that starts inside a bucket has one bar more than it has complete buckets. */
const maxCompleteBars = (widthPx: number): number => Math.max(1, maxBarsIn(widthPx) - 1);

/** The span of a chart: whole buckets, including the current one, which is incomplete. */
export function visibleSpan(timeRange: TimeRange, now: number, bucketMinutes: number): TimeSpan {
  const bucketMs = bucketMinutes * minuteMs;
  const { from, to } = chosenSpan(timeRange, now);
  return { from: floorToStep(from, bucketMs), to: ceilToStep(to === now ? now + 1 : to, bucketMs) };
}

export const sameQuery = (a: BucketQuery, b: BucketQuery): boolean =>
  a.days === b.days && a.bucketMinutes === b.bucketMinutes;

export const sameSpan = (a: TimeSpan, b: TimeSpan): boolean => a.from === b.from && a.to === b.to;

/** For a control that selects a preset. */
export const presetOptions = Object.entries(rangePresets).map(([value, { label }]) => ({
  value: value as RangePreset,
  label,
}));
