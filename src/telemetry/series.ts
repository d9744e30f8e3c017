import { type Aggregator, Counter, Gauge, type Registry } from "prom-client";

export interface GaugeOptions {
  name: string;
  help: string;
  /** How the values of several processes are combined; the sum by default. */
  aggregator?: Aggregator;
}

/** Adds a gauge that is read at each scrape; it has no series while its value is unknown. */
export function addGauge(registry: Registry, options: GaugeOptions, read: () => number | undefined): void {
  const gauge: Gauge = new Gauge({
    ...options,
    registers: [registry],
    collect() {
      const value = read();
      if (value === undefined) gauge.remove();
      else gauge.set(value);
    },
  });
}

/**
 * Creates a counter whose series count in plain numbers until the next scrape. An increment costs a few nanoseconds;
 * prom-client's own, which resolves the labels each time, costs 200.
 * @returns creates the series of a set of labels
 */
export function createCounter<L extends string>(
  registry: Registry,
  options: { name: string; help: string; labelNames: readonly L[] },
): (labels: Record<L, string>) => { count: number } {
  const pending: { labels: Record<L, string>; series: { count: number } }[] = [];
  const counter: Counter<L> = new Counter({
    ...options,
    registers: [registry],
    collect() {
      for (const { labels, series } of pending) {
        counter.inc(labels, series.count);
        series.count = 0;
      }
    },
  });
  return (labels) => {
    const series = { count: 0 };
    pending.push({ labels, series });
    return series;
  };
}
