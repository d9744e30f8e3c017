import { type Aggregator, Counter, Gauge, type MetricObject, type Registry } from "prom-client";

/**
 * Adds a gauge that is read at each scrape; it has no series while its value is unknown.
 * @param aggregator how the values of several processes are combined
 */
export function addGauge(
  registry: Registry,
  name: string,
  help: string,
  read: () => number | undefined,
  aggregator: Aggregator = "sum",
): void {
  const gauge: Gauge = new Gauge({
    name,
    help,
    aggregator,
    registers: [registry],
    collect() {
      const value = read();
      if (value === undefined) gauge.remove();
      else gauge.set(value);
    },
  });
  // It begins as 0, and would stay so if the first reading fails.
  gauge.remove();
}

/**
 * Lets every other metric survive one that cannot be read, as several cannot without a free file descriptor: its series
 * keep their last values, and its failures count. To be called when all metrics are registered.
 */
export function isolateCollectors(registry: Registry): void {
  const metrics = registry.getMetricsAsArray();
  // The last one, so that a page counts its own failures.
  const errors = new Counter({
    name: "tollgate_collector_errors_total",
    help: "Readings of a metric that failed; it keeps its last value",
    labelNames: ["collector"],
    registers: [registry],
  });
  for (const metric of metrics) {
    const collect: MetricObject["collect"] | undefined = metric.collect;
    if (collect === undefined) continue;
    metric.collect = async () => {
      try {
        await collect.call(metric);
      } catch {
        errors.inc({ collector: metric.name });
      }
    };
  }
}

/**
 * Creates a counter whose series count in plain numbers until the next scrape. An increment costs a few nanoseconds;
 * prom-client's own, which resolves the labels each time, costs 200.
 * @returns creates the series of a set of labels
 */
export function createCounter<L extends string>(
  registry: Registry,
  name: string,
  help: string,
  labelNames: readonly L[],
): (labels: Record<L, string>) => { count: number } {
  const pending: { labels: Record<L, string>; series: { count: number } }[] = [];
  const counter: Counter<L> = new Counter({
    name,
    help,
    labelNames,
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
