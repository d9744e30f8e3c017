// What requests, the ledger and the process report: metrics (here), the log of requests, statistics of traffic, and
// what is in flight.
//
// It keeps true: no response waits for an observer (`observers.ts`). What clients choose has a bounded number of series
// and sums; the rest is one of them. A metric that cannot be read leaves the others as they are (`series.ts`). Each
// server has its own registry, so that two servers in one process count separately; over processes, counters are added
// up. It knows the proxy and the ledger by `domain` alone: they tell it, or functions that it is given do.

import {
  type Aggregator,
  AggregatorRegistry,
  Gauge,
  type MetricObjectWithValues,
  type MetricValue,
  Registry,
} from "prom-client";
import { addBackendMetrics } from "./backend-metrics.ts";
import { addProcessMetrics } from "./process-metrics.ts";
import { metricsText } from "./metrics-text.ts";
import { createCommitObserver, createRequestMetrics } from "./request-metrics.ts";
import { addSlowGauges, type SlowValues } from "./slow-gauges.ts";
import { addGauge, createCounter, isolateCollectors } from "./series.ts";
import type { BackendStates } from "../domain/backends.ts";

/** Describes the queue of this process; the places are those of all processes. */
export interface ObservedQueue {
  /** Undefined if the backend gets any number of requests at once. */
  places: number | undefined;
  /** Read at each scrape. */
  depth: () => { waiting: number; running: number };
}

interface MetricsOptions {
  version: string;
  commit: string;
  /** Adds series for each API key, by its id. */
  perKey: boolean;
  /** Usage that is not committed yet; read at each scrape. */
  waiting: () => {
    requests: number;
    keys: number;
    /** The age of the oldest, in milliseconds; 0 if there is none. */
    sinceMs: number;
  };
  /** Requests whose usage the database refuses; read at each scrape. */
  refusedRequests: () => number;
  /** What is wrong as this process sees it; read at each scrape. */
  problems: () => readonly { kind: string; silencedUntil: number | null }[];
  /** Whether this process enforces the limits of keys without the database; read at each scrape. */
  areLimitsDegraded: () => boolean;
  /** Requests whose response has not ended; read at each scrape. */
  inFlight: () => number;
  slow: SlowValues;
  queue?: ObservedQueue;
  /** Those of a file of models, read at each scrape; undefined without one. */
  backends?: BackendStates["list"] | undefined;
  /** Rows of the request log that were lost in a long outage of the database; read at each scrape. */
  droppedRequests: () => number;
}

/** The metrics of one process, as plain data that can be sent to another process. */
export type MetricsSnapshot = MetricObjectWithValues<MetricValue<string>>[];

export type Metrics = ReturnType<typeof createMetrics>;

export const metricsContentType = Registry.PROMETHEUS_CONTENT_TYPE;

/** The metrics of several processes as one text: counters and histograms are sums, lags are maxima. */
export async function aggregatedMetricsText(snapshots: MetricsSnapshot[]): Promise<string> {
  return metricsText(AggregatorRegistry.aggregate(snapshots));
}

/** Merges the counters and histograms of several snapshots. Gauges are left out: they describe a running process. */
export async function aggregatedCounters(snapshots: MetricsSnapshot[]): Promise<MetricsSnapshot> {
  const isCounter = ({ type }: { type: unknown }): boolean => type !== "gauge";
  return AggregatorRegistry.aggregate(snapshots.map((snapshot) => snapshot.filter(isCounter))).getMetricsAsJSON();
}

export function createMetrics(options: MetricsOptions) {
  const registry = new Registry();
  new Gauge({
    name: "tollgate_build_info",
    help: "Build information; always 1",
    labelNames: ["version", "commit"],
    aggregator: "first",
    registers: [registry],
  }).set({ version: options.version, commit: options.commit }, 1);
  const notLogged = createCounter(
    registry,
    "tollgate_request_log_omitted_total",
    "Requests missing from the request log: refused ones above its limit, and those for which memory had no room",
    ["reason"],
  );
  const [omitted, dropped] = [notLogged({ reason: "refused" }), notLogged({ reason: "no_room" })];
  let droppedBefore = 0;
  const readDropped = (): void => {
    const now = options.droppedRequests();
    dropped.count += now - droppedBefore;
    droppedBefore = now;
  };
  const latest: Latest = { certificateEndSeconds: undefined, gpuPushSeconds: undefined };
  for (const [name, help, read, aggregator] of gaugesOf(options, latest))
    addGauge(registry, name, help, read, aggregator);
  addProblems(registry, options.problems);
  addSlowGauges(registry, options.slow);
  const closeProcess = addProcessMetrics(registry);
  const ofBackends = options.backends && addBackendMetrics(registry, options.backends);
  const samplesHelp = "GPU samples received, by result; samples out of bounds are skipped";
  const samples = createCounter(registry, "tollgate_gpu_samples_total", samplesHelp, ["result"]);
  const [stored, skipped] = [samples({ result: "stored" }), samples({ result: "skipped" })];
  const observers = {
    ...createRequestMetrics(registry, options.perKey, ofBackends),
    ...createCommitObserver(registry, options.perKey),
  };
  isolateCollectors(registry);
  return {
    ...observers,
    /** A POST of GPU samples: the number stored, and the number skipped because they were out of bounds. */
    gpuSamplesReceived(storedCount: number, skippedCount: number): void {
      stored.count += storedCount;
      skipped.count += skippedCount;
      latest.gpuPushSeconds = Date.now() / 1000;
    },
    /** The certificate that connections get from now on. */
    servesCertificate: ({ validTo }: { validTo: Date }) =>
      void (latest.certificateEndSeconds = validTo.getTime() / 1000),
    /** A refused request is not in the request log, because many like it are. */
    requestOmitted: () => void omitted.count++,
    /** In the Prometheus text format; served as `metricsContentType`. */
    text() {
      readDropped();
      return metricsText(registry);
    },
    snapshot(): Promise<MetricsSnapshot> {
      readDropped();
      return registry.getMetricsAsJSON();
    },
    close: closeProcess,
  };
}

/** What metrics are told, and tell when they are read. */
type Latest = Record<"certificateEndSeconds" | "gpuPushSeconds", number | undefined>;

type GaugeOf = readonly [name: string, help: string, read: () => number | undefined, aggregator?: Aggregator];

function gaugesOf(options: MetricsOptions, latest: Latest): readonly GaugeOf[] {
  const { waiting, refusedRequests, areLimitsDegraded, inFlight, queue } = options;
  const queueHelp = "Requests that wait for the limits of their key or for a place at a backend";
  const ofQueue: GaugeOf[] = queue ? [["tollgate_queue_waiting_requests", queueHelp, () => queue.depth().waiting]] : [];
  const places = queue?.places;
  const ofPlaces: GaugeOf[] =
    queue === undefined || places === undefined
      ? []
      : [
          ["tollgate_queue_used_places", "Places at the backend that requests have", () => queue.depth().running],
          ["tollgate_queue_places", "PROXY_MAX_CONCURRENCY", () => places, "max"],
        ];
  return [
    ["tollgate_processes", "Processes that share the port", () => 1],
    ["tollgate_requests_in_flight", "Requests whose response has not ended", inFlight],
    [
      "tollgate_limits_degraded",
      "Processes that decide on the limits of API keys without the database, as LIMITS_FALLBACK says",
      () => (areLimitsDegraded() ? 1 : 0),
    ],
    [
      "tollgate_ledger_refused_requests",
      "Requests that the database refused to count since the start",
      refusedRequests,
    ],
    ["tollgate_ledger_waiting_requests", "Requests whose usage is not committed yet", () => waiting().requests],
    ["tollgate_ledger_waiting_keys", "API keys with usage that is not committed yet", () => waiting().keys],
    [
      "tollgate_ledger_lag_seconds",
      "Age of the oldest usage that is not committed yet, in seconds",
      () => waiting().sinceMs / 1000,
      "max",
    ],
    ...ofQueue,
    ...ofPlaces,
    [
      "tollgate_certificate_not_after_timestamp_seconds",
      "End of the certificate's validity since the Unix epoch, in seconds; absent without HTTPS",
      () => latest.certificateEndSeconds,
      "min",
    ],
    [
      "tollgate_gpu_last_push_timestamp_seconds",
      "Time of the last push of GPU samples since the Unix epoch, in seconds",
      () => latest.gpuPushSeconds,
      "max",
    ],
  ];
}

function addProblems(registry: Registry, problems: MetricsOptions["problems"]): void {
  const gauge: Gauge<"kind" | "silenced"> = new Gauge({
    name: "tollgate_problem",
    help: "1 for each kind of state that stands, by whether it is silenced",
    labelNames: ["kind", "silenced"],
    aggregator: "max",
    registers: [registry],
    collect() {
      gauge.reset();
      for (const { kind, silencedUntil } of problems())
        gauge.set({ kind, silenced: (silencedUntil ?? 0) > Date.now() ? "yes" : "no" }, 1);
    },
  });
}
