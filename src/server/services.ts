import { type Admissions, createAdmissions } from "../admission/admission.ts";
import type { Config, Environment } from "../config/config.ts";
import { createRevocations, type Revocations } from "../admission/revocations.ts";
import { createLedger, type Ledger } from "../ledger/ledger.ts";
import type { Log } from "../log/log.ts";
import { createLocalPlaces } from "../admission/places.ts";
import { createRequestQueue, type RequestQueue } from "../proxy/request/queue.ts";
import type { Places } from "../domain/admissions.ts";
import { clientAddressOf } from "../domain/client-address.ts";
import { checkUpstream, fetchBackendMetrics } from "../proxy/upstream/probe.ts";
import type { Certificate } from "../runtime/certificate.ts";
import type { Store } from "../store/store.ts";
import type { AggregateStats, ProcessStats } from "../supervisor/protocol.ts";
import { measureDisk } from "../telemetry/disk.ts";
import { createMetrics, type Metrics } from "../telemetry/metrics.ts";
import {
  createInFlight,
  type InFlight,
  createUpstreamFailures,
  type UpstreamFailures,
} from "../telemetry/observers.ts";
import { pollBackendCounters } from "../telemetry/poll-backend-counters.ts";
import type { Samples } from "../telemetry/sampled-metrics.ts";
import { createTrafficRecorder, type TrafficRecorder } from "../telemetry/traffic-recorder.ts";
import type { MonotonicClock, WallClock } from "../time/clock.ts";
import { build } from "../config/version.ts";

export interface ServerOptions {
  clock: WallClock;
  log: Log;
  /** Shows the operator what belongs into no log line: the first password. */
  print: (text: string) => void;
  /** What the settings were read from; the console shows them. */
  environment?: Environment;
  /** Only if other processes share the ports: takes this one's stats and returns those of all. */
  shareStats?: ((own: ProcessStats) => AggregateStats) | undefined;
  /** The places at the backend that these processes share. */
  places?: Places | undefined;
  /** Whether these processes may log one more refused request of a source. Never rejects. */
  mayLogShared?: ((source: string) => Promise<boolean>) | undefined;
}

/** The sections of the configuration that services need. */
type ServicesConfig = Pick<Config, "upstream" | "queue" | "limitsFallback" | "metrics" | "storage" | "listen">;

interface Opened extends ServerOptions {
  store: Store;
  certificate: Certificate | undefined;
}

/** What both sides of a server are made of. */
export interface Services extends Opened {
  ledger: Ledger;
  /** Requests are logged one by one in the database. */
  logsRequests: boolean;
  clientAddress: (request: Request, peerAddress: string | undefined) => string;
  admissions: Admissions;
  revocations: Revocations;
  metrics: Metrics;
  recorder: TrafficRecorder;
  stopPolling: () => void;
  inFlight: InFlight;
  queue: RequestQueue;
  upstreamFailures: UpstreamFailures;
  /** Adds up all processes that share the ports. */
  stats: AggregateStats;
  /** Refuses what comes over connections that are still open. */
  draining: AbortController;
  /** Ends what still runs when the grace is over. */
  stopping: AbortController;
}

export const monotonic: MonotonicClock = performance.now.bind(performance);

export function createServices(config: ServicesConfig, opened: Opened): Services {
  const { store, clock, log } = opened;
  const [draining, stopping] = [new AbortController(), new AbortController()];
  const inFlight = createInFlight();
  const revocations = createRevocations({
    store: store.limits,
    clock,
    monotonic,
    isRunning: () => inFlight.count() > 0,
  });
  const queue = createQueue(config.queue, { ...opened, stopping, revocations });
  const recorder = createTrafficRecorder({ write: store.traffic.add, clock, log });
  const metrics = createMetrics({
    ...build,
    perKey: config.metrics.perKey,
    waiting: () => ledger.waiting(),
    refusedRequests: () => ledger.refusedRequests(),
    areLimitsDegraded: () => admissions.isDegraded(),
    inFlight: inFlight.count,
    droppedRequests: () => ledger.droppedRequests(),
    tokenless: recorder.tokenlessCount,
    samples: samplesOf(config.upstream, config.storage.dataDir, store),
    queue: { places: config.queue.places, depth: queue.depth },
  });
  const logsRequests = config.storage.retention.requestLog.days > 0;
  const ledger = createLedger({ store: store.usage, clock, log, observer: metrics, logsRequests });
  const admissions = createAdmissions({
    store: store.limits,
    monotonic,
    clock,
    log,
    fallback: config.limitsFallback,
    areCountsWaiting: () => ledger.state() === "waiting",
  });
  return {
    ...opened,
    ledger,
    logsRequests,
    clientAddress: clientAddressOf(config.listen.trustedHops),
    admissions,
    revocations,
    metrics,
    recorder,
    stopPolling: pollBackendCounters({
      fetchMetrics: (signal) => fetchBackendMetrics(config.upstream, signal),
      write: (counters) => store.reconciliation.add({ ...counters, at: clock() }),
      log,
    }),
    inFlight,
    queue,
    upstreamFailures: createUpstreamFailures(clock),
    stats: statsOf(opened, metrics, inFlight),
    draining,
    stopping,
  };
}

/** How long the backend may take to count as up. */
const probeMs = 5_000;

/** What `/metrics` reports of the server's surroundings. */
function samplesOf(upstream: Config["upstream"], dataDir: string, store: Store): Samples {
  return {
    upstreamUp: async () => (await checkUpstream(upstream, AbortSignal.timeout(probeMs))).ok,
    database: store.size,
    disk: () => measureDisk(dataDir),
  };
}

function statsOf({ shareStats }: ServerOptions, { snapshot, text }: Metrics, inFlight: InFlight): AggregateStats {
  const { count, list: running, end: endRequest } = inFlight;
  return (
    shareStats?.({ metrics: snapshot, inFlight: count, running, endRequest }) ?? {
      metricsText: text,
      inFlight: async () => count(),
      running: async () => running(),
      endRequest: async (id) => endRequest(id),
    }
  );
}

function createQueue(
  queue: Config["queue"],
  { places, stopping, revocations }: Pick<Services, "places" | "stopping" | "revocations">,
): RequestQueue {
  return createRequestQueue({
    places: places ?? createLocalPlaces(queue),
    hasPlaces: queue.places !== undefined,
    timeoutMs: queue.timeoutMs,
    monotonic,
    stopping: stopping.signal,
    onKeyEnded: revocations.onRevoked,
  });
}
