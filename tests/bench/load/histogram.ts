import type { Quantiles } from "./spec.ts";

const stepUs = 5;
const steps = 1_000_000;

/** Counts durations in steps of 5 µs up to 5 s, in constant memory. */
export interface Histogram {
  add(us: number): void;
  quantiles(): Quantiles;
}

export function createHistogram(): Histogram {
  const counts = new Uint32Array(steps + 1);
  let total = 0;
  let max = 0;

  const quantile = (share: number): number => {
    let left = Math.ceil(total * share);
    for (let step = 0; step <= steps; step++) {
      left -= counts[step] ?? 0;
      if (left <= 0) return step * stepUs;
    }
    return max;
  };
  return {
    add(us) {
      const step = Math.min(steps, Math.round(us / stepUs));
      counts[step] = (counts[step] ?? 0) + 1;
      total++;
      max = Math.max(max, us);
    },
    quantiles: () => (total === 0 ? { p50: 0, p99: 0, max: 0 } : { p50: quantile(0.5), p99: quantile(0.99), max }),
  };
}
