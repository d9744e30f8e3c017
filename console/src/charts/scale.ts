import { ceilToStep, clockLabel, dayLabel, dayMs, hourMs, minuteMs } from "../data/seoul-time.ts";
import type { TimeSpan } from "../data/time-range.ts";

/** Narrower bars blur and are slow to draw, so neighbours are merged. */
const minBarPx = 3;

/** The width of a bar in milliseconds: the fewest whole buckets that are at least `minBarPx` wide. */
export function barStep(span: TimeSpan, bucketMs: number, widthPx: number): number {
  const buckets = (span.to - span.from) / bucketMs;
  const maxBars = Math.max(1, Math.floor(widthPx / minBarPx));
  return Math.max(1, Math.ceil(buckets / maxBars)) * bucketMs;
}

/** At most six round values from 0 to at least `max`. */
export function valueTicks(max: number, whole: boolean): number[] {
  if (!(max > 0)) return whole ? [0, 1] : [0];
  const rough = max / 5;
  const magnitude = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * magnitude).find((candidate) => candidate >= rough) ?? rough;
  const size = whole ? Math.max(1, Math.ceil(step)) : step;
  return Array.from({ length: Math.ceil(max / size - 1e-9) + 1 }, (_, index) => index * size);
}

const tickSteps = [
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * minuteMs),
  ...[1, 2, 3, 6, 12].map((hours) => hours * hourMs),
  ...[1, 2, 5, 7, 10].map((days) => days * dayMs),
];

export interface TimeTick {
  at: number;
  label: string;
}

/** Round Seoul times at least `gapPx` apart. The label of midnight is its day. */
export function timeTicks(span: TimeSpan, widthPx: number, gapPx = 80): TimeTick[] {
  const least = ((span.to - span.from) * gapPx) / Math.max(1, widthPx);
  const step = tickSteps.find((candidate) => candidate >= least) ?? 10 * dayMs;
  const ticks: TimeTick[] = [];
  for (let at = ceilToStep(span.from, step); at < span.to; at += step) {
    ticks.push({ at, label: at === ceilToStep(at, dayMs) ? dayLabel(at) : clockLabel(at) });
  }
  return ticks;
}

export const xOf = (at: number, span: TimeSpan, widthPx: number): number =>
  ((at - span.from) / (span.to - span.from)) * widthPx;
