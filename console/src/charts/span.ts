import type { TimeSpan } from "../lib/time-range.ts";

interface SpanLimits {
  stepMs: number;
  /** Epoch milliseconds; there is no data after it. */
  now: number;
}

/** The span moved by whole steps, at most to now. @param steps negative: into the past */
export function shiftedSpan({ from, to }: TimeSpan, steps: number, { stepMs, now }: SpanLimits): TimeSpan {
  const mostSteps = Math.max(0, Math.ceil((now - to) / stepMs));
  const ms = Math.min(steps, mostSteps) * stepMs;
  return { from: from + ms, to: to + ms };
}

/** A span that is `factor` times as long: at least two steps, and not beyond now. */
export function scaledSpan(
  { from, to }: TimeSpan,
  factor: number,
  { middle, stepMs, now }: SpanLimits & { middle: number },
): TimeSpan {
  const steps = Math.max(2, Math.round(((to - from) * factor) / stepMs));
  const end = from + Math.round((middle - from) / stepMs + steps / 2) * stepMs;
  const latest = from + Math.ceil((Math.max(now, to) - from) / stepMs) * stepMs;
  const scaledTo = Math.min(end, latest);
  return { from: scaledTo - steps * stepMs, to: scaledTo };
}
