import { ceilToStep, dayMs, floorToStep, hourMs, minuteMs, parseSeoulMinute, seoulMinute } from "./seoul-time.ts";

/** How far a chart reaches back, and the buckets that show about 720 bars of it at most. */
export const ranges = {
  "1h": { label: "1 h", spanMs: hourMs, bucketMinutes: 1 },
  "6h": { label: "6 h", spanMs: 6 * hourMs, bucketMinutes: 1 },
  "24h": { label: "24 h", spanMs: dayMs, bucketMinutes: 2 },
  "7d": { label: "7 d", spanMs: 7 * dayMs, bucketMinutes: 15 },
  "30d": { label: "30 d", spanMs: 30 * dayMs, bucketMinutes: 60 },
} as const;

export type Range = keyof typeof ranges;

/** Epoch milliseconds, the end exclusive. */
export interface Span {
  from: number;
  to: number;
}

export interface View {
  range: Range;
  zoom: Span | undefined;
}

/** What the API is asked for. */
export interface BucketQuery {
  days: number;
  bucketMinutes: number;
}

type Parameters = Readonly<Record<string, string | string[] | undefined>>;

const isRange = (text: unknown): text is Range => typeof text === "string" && Object.hasOwn(ranges, text);

/** Reads the address; what is not understood is left out. */
export function readView(parameters: Parameters, otherwise: Range): View {
  const from = parseSeoulMinute(String(parameters["from"]));
  const to = parseSeoulMinute(String(parameters["to"]));
  return {
    range: isRange(parameters["range"]) ? parameters["range"] : otherwise,
    zoom: from !== undefined && to !== undefined && from < to ? { from, to } : undefined,
  };
}

export const zoomParameters = (zoom: Span | undefined): { from: string | undefined; to: string | undefined } => ({
  from: zoom && seoulMinute(zoom.from),
  to: zoom && seoulMinute(zoom.to),
});

/** How far back the API's histories reach. */
export const maxDays = 30;

const finerBuckets = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440];

/** The API reaches back from now, so looking closely at a distant hour fetches all since: this many points are still answered and parsed without a wait. */
const maxPoints = 200_000;
const maxBars = 720;

/** @param keyCount how many series a bucket may hold */
export function bucketQuery(view: View, now: number, keyCount: number): BucketQuery {
  const { spanMs, bucketMinutes } = ranges[view.range];
  if (view.zoom === undefined) return { days: Math.ceil(spanMs / dayMs), bucketMinutes };
  const days = Math.min(maxDays, Math.max(1, Math.ceil((now - view.zoom.from) / dayMs)));
  const barMinutes = (view.zoom.to - view.zoom.from) / minuteMs / maxBars;
  const pointMinutes = (days * 1440 * Math.max(1, keyCount)) / maxPoints;
  const finer = finerBuckets.find((minutes) => minutes >= barMinutes && minutes >= pointMinutes) ?? 1440;
  return { days, bucketMinutes: Math.min(finer, bucketMinutes) };
}

/** What the chart spans: whole buckets, up to and with the one that is still filling. */
export function visibleSpan(view: View, now: number, bucketMinutes: number): Span {
  const bucketMs = bucketMinutes * minuteMs;
  if (view.zoom !== undefined) {
    return { from: floorToStep(view.zoom.from, bucketMs), to: ceilToStep(view.zoom.to, bucketMs) };
  }
  return { from: floorToStep(now - ranges[view.range].spanMs, bucketMs), to: floorToStep(now, bucketMs) + bucketMs };
}

export const sameQuery = (a: BucketQuery, b: BucketQuery): boolean =>
  a.days === b.days && a.bucketMinutes === b.bucketMinutes;

export const sameSpan = (a: Span, b: Span): boolean => a.from === b.from && a.to === b.to;

/** For a choice of ranges. */
export const rangeOptions = Object.entries(ranges).map(([value, { label }]) => ({ value: value as Range, label }));
