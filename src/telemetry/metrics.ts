import {
  AggregatorRegistry,
  Counter,
  Gauge,
  Histogram,
  type MetricObjectWithValues,
  type MetricValue,
  Registry,
} from "prom-client";
import type { Ledger } from "../ledger.ts";
import { addProcessMetrics } from "./process-metrics.ts";
import { createRequestMetrics } from "./request-metrics.ts";
import { addGauge, createCounter } from "./series.ts";
import type { RequestObserver } from "../domain.ts";

export interface MetricsOptions {
  version: string;
  commit: string;
  /** One more series for each key, by its id. */
  perKey: boolean;
  /** Asked at each scrape. */
  waiting: Ledger["waiting"];
  /** Requests whose response has not ended; read at each scrape. */
  inFlight: () => number;
}

/** What one process counted; plain data, so that it can be sent to another one. */
export type MetricsSnapshot = MetricObjectWithValues<MetricValue<string>>[];

export interface Metrics extends RequestObserver {
  /** One transaction of the ledger went through. */
  committed(durationMs: number): void;
  /** One transaction of the ledger did not, and will be tried again. */
  commitFailed(): void;
  /** One POST of GPU samples: how many were stored, and how many were out of bounds. */
  gpuSamplesReceived(stored: number, skipped: number): void;
  /** In the Prometheus text format; served as `metricsContentType`. */
  text(): Promise<string>;
  snapshot(): Promise<MetricsSnapshot>;
  close(): void;
}

export const metricsContentType = Registry.PROMETHEUS_CONTENT_TYPE;

/** The text of several processes together: counters and histograms summed, lags the worst of all. */
export async function summedMetricsText(snapshots: MetricsSnapshot[]): Promise<string> {
  return AggregatorRegistry.aggregate(snapshots).metrics();
}

/** One snapshot for several, of what lasts longer than the process that counted it: gauges, which tell of now, are left out. */
export async function lastingCounts(snapshots: MetricsSnapshot[]): Promise<MetricsSnapshot> {
  const lasting = ({ type }: { type: unknown }): boolean => type !== "gauge";
  return AggregatorRegistry.aggregate(snapshots.map((snapshot) => snapshot.filter(lasting))).getMetricsAsJSON();
}

/** Each server has its own, so that two in one process do not count for each other. */
export function createMetrics(options: MetricsOptions): Metrics {
  const registry = new Registry();
  new Gauge({
    name: "tollgate_build_info",
    help: "1, labelled with what is running",
    labelNames: ["version", "commit"],
    aggregator: "first",
    registers: [registry],
  }).set({ version: options.version, commit: options.commit }, 1);
  new Gauge({
    name: "tollgate_processes",
    help: "Processes that share the port, as far as they answer",
    registers: [registry],
  }).set(1);
  const gpuSamples = createCounter(registry, {
    name: "tollgate_gpu_samples_total",
    help: "GPU samples received: stored, or skipped because they were out of bounds",
    labelNames: ["result"],
  });
  const [stored, skipped] = [gpuSamples({ result: "stored" }), gpuSamples({ result: "skipped" })];
  addGauge(
    registry,
    { name: "tollgate_requests_in_flight", help: "Requests whose response has not ended" },
    options.inFlight,
  );
  addLedgerGauges(registry, options.waiting);
  const closeProcess = addProcessMetrics(registry);
  return {
    ...createRequestMetrics(registry, options.perKey),
    ...createCommitObserver(registry),
    gpuSamplesReceived(storedCount, skippedCount) {
      stored.count += storedCount;
      skipped.count += skippedCount;
    },
    text: () => registry.metrics(),
    snapshot: () => registry.getMetricsAsJSON(),
    close: closeProcess,
  };
}

function createCommitObserver(registry: Registry): Pick<Metrics, "committed" | "commitFailed"> {
  const durations = new Histogram({
    name: "tollgate_storage_commit_duration_seconds",
    help: "How long a transaction of the ledger took",
    buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers: [registry],
  });
  const failures = new Counter({
    name: "tollgate_storage_commit_failures_total",
    help: "Transactions of the ledger that failed and were tried again",
    registers: [registry],
  });
  return {
    committed: (durationMs) => durations.observe(durationMs / 1000),
    commitFailed: () => failures.inc(),
  };
}

function addLedgerGauges(registry: Registry, waiting: MetricsOptions["waiting"]): void {
  addGauge(
    registry,
    { name: "tollgate_ledger_waiting_requests", help: "Counted requests that are not written yet" },
    () => waiting().requests,
  );
  addGauge(
    registry,
    { name: "tollgate_ledger_waiting_keys", help: "Keys with counts that are not written yet" },
    () => waiting().keys,
  );
  addGauge(
    registry,
    {
      name: "tollgate_ledger_lag_seconds",
      help: "How long the oldest count that is not written yet has waited",
      aggregator: "max",
    },
    () => waiting().sinceMs / 1000,
  );
}
