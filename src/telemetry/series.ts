import { type Aggregator, Counter, Gauge, type Registry } from "prom-client";

export interface GaugeOptions {
  name: string;
  help: string;
  /** How the values of several processes become one; their sum where it is left out. */
  aggregator?: Aggregator;
}

/** A gauge that is read at each scrape. */
export function addGauge(registry: Registry, options: GaugeOptions, read: () => number): void {
  const gauge: Gauge = new Gauge({ ...options, registers: [registry], collect: () => gauge.set(read()) });
}

/**
 * A counter whose children count in a plain number until the next scrape: adding to one costs a few nanoseconds,
 * prom-client's way, which resolves the labels at each addition, 200.
 */
export function createCounter<L extends string>(
  registry: Registry,
  options: { name: string; help: string; labelNames: readonly L[] },
): (labels: Record<L, string>) => { count: number } {
  const pending: { labels: Record<L, string>; child: { count: number } }[] = [];
  const counter: Counter<L> = new Counter({
    ...options,
    registers: [registry],
    collect() {
      for (const { labels, child } of pending) {
        counter.inc(labels, child.count);
        child.count = 0;
      }
    },
  });
  return (labels) => {
    const child = { count: 0 };
    pending.push({ labels, child });
    return child;
  };
}
