import { ceilToStep, dayMs, floorToStep, hourMs, minuteMs, parseSeoulMinute, seoulMinute } from "./seoul-time.ts";

/** How far back a chart reaches, and the bucket width that gives at most about 720 bars. */
export const rangePresets = {
  "1h": { label: "1 h", spanMs: hourMs, bucketMinutes: 1 },
  "6h": { label: "6 h", spanMs: 6 * hourMs, bucketMinutes: 1 },
  "24h": { label: "24 h", spanMs: dayMs, bucketMinutes: 2 },
  "7d": { label: "7 d", spanMs: 7 * dayMs, bucketMinutes: 15 },
  "30d": { label: "30 d", spanMs: 30 * dayMs, bucketMinutes: 60 },
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

const finerBuckets = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440];

/**
 * The API's histories end now, so a zoom into a distant hour fetches everything since. The server sends and the browser
 * parses this many points without a noticeable delay.
 */
const maxPoints = 200_000;
const maxBars = 720;

/** @param keyCount how many points a bucket may have */
export function bucketQuery(timeRange: TimeRange, now: number, keyCount: number): BucketQuery {
  const { spanMs, bucketMinutes } = rangePresets[timeRange.preset];
  if (timeRange.zoom === undefined) return { days: Math.ceil(spanMs / dayMs), bucketMinutes };
  const days = Math.min(maxDays, Math.max(1, Math.ceil((now - timeRange.zoom.from) / dayMs)));
  const barMinutes = (timeRange.zoom.to - timeRange.zoom.from) / minuteMs / maxBars;
  const pointMinutes = (days * 1440 * Math.max(1, keyCount)) / maxPoints;
  const finer = finerBuckets.find((minutes) => minutes >= barMinutes && minutes >= pointMinutes) ?? 1440;
  return { days, bucketMinutes: Math.min(finer, bucketMinutes) };
}

/** The span of a chart: whole buckets, including the current one, which is incomplete. */
export function visibleSpan(timeRange: TimeRange, now: number, bucketMinutes: number): TimeSpan {
  const bucketMs = bucketMinutes * minuteMs;
  if (timeRange.zoom !== undefined) {
    return { from: floorToStep(timeRange.zoom.from, bucketMs), to: ceilToStep(timeRange.zoom.to, bucketMs) };
  }
  return {
    from: floorToStep(now - rangePresets[timeRange.preset].spanMs, bucketMs),
    to: floorToStep(now, bucketMs) + bucketMs,
  };
}

export const sameQuery = (a: BucketQuery, b: BucketQuery): boolean =>
  a.days === b.days && a.bucketMinutes === b.bucketMinutes;

export const sameSpan = (a: TimeSpan, b: TimeSpan): boolean => a.from === b.from && a.to === b.to;

/** For a control that selects a preset. */
export const presetOptions = Object.entries(rangePresets).map(([value, { label }]) => ({
  value: value as RangePreset,
  label,
}));
