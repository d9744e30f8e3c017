import { dayMs, hourMs, minuteMs } from "../lib/seoul-time.ts";
import { clockLabel, dayLabel } from "../lib/time-labels.ts";
import type { TimeSpan } from "../lib/time-range.ts";
import { offsetMs } from "../lib/time-zone.ts";

/** At most six round values from 0 to at least `max`. */
export function valueTicks(max: number, whole: boolean): number[] {
  if (!(max > 0)) return [0];
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

interface TimeTick {
  at: number;
  label: string;
}

/** A phone has space for a label every six hours of a day; more labels on a wide chart would not help. */
const gapIn = (widthPx: number): number => (widthPx < 480 ? 41 : 80);

/** Round times of the chosen zone, whose labels do not overlap. The label of midnight is its day. */
export function timeTicks(span: TimeSpan, widthPx: number): TimeTick[] {
  const gapPx = gapIn(widthPx);
  const least = ((span.to - span.from) * gapPx) / Math.max(1, widthPx);
  const step = tickSteps.find((candidate) => candidate >= least) ?? 10 * dayMs;
  const ticks: TimeTick[] = [];
  const offset = offsetMs(span.from);
  for (let wall = Math.ceil((span.from + offset) / step) * step; wall - offset < span.to; wall += step) {
    // The offset changes within the span if summer time begins or ends.
    const at = wall - offsetMs(wall - offset);
    ticks.push({ at, label: clockLabel(at) === "00:00" ? dayLabel(at) : clockLabel(at) });
  }
  return withoutOverlap(ticks, (at) => xOf(at, span, widthPx));
}

/** About the width of a character in the labels. */
const characterPx = 5.9;
/** Between two labels: with less they read as one. */
const betweenPx = 8;

function withoutOverlap(ticks: readonly TimeTick[], positionOf: (at: number) => number): TimeTick[] {
  let freeFrom = -Infinity;
  return ticks.filter(({ at, label }) => {
    const halfPx = (label.length * characterPx) / 2;
    if (positionOf(at) - halfPx < freeFrom) return false;
    freeFrom = positionOf(at) + halfPx + betweenPx;
    return true;
  });
}

export const xOf = (at: number, span: TimeSpan, widthPx: number): number =>
  ((at - span.from) / (span.to - span.from)) * widthPx;
