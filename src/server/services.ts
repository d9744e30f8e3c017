import { hostname } from "node:os";
import { createAdmissions } from "../admission/admission.ts";
import type { Config, Environment } from "../config/config.ts";
import { catalogFromEnvironment, fixedCatalog } from "../config/catalog.ts";
import { shareBackends } from "../admission/shared-draining.ts";
import { createRevocations } from "../admission/revocations.ts";
import { createLedger } from "../ledger/ledger.ts";
import type { Log } from "../log/log.ts";
import { createLocalPlaces } from "../routing/dispatch.ts";
import { RequestQueue } from "../proxy/waiting.ts";
import type { CurrentCatalog } from "../domain/models.ts";
import type { BackendStates, BackendStatus, Engines } from "../domain/backends.ts";
import type { Places } from "../domain/admissions.ts";
import type { Change } from "../domain/changes.ts";
import { clientAddressOf } from "../domain/client-address.ts";
import { createBackendModels, type OddName } from "../proxy/response/discovered-models.ts";
import { goesByClient } from "../proxy/rewrite/rewrite.ts";
import { createEngines, findEngine } from "../proxy/upstream/engine.ts";
import {
  checkHealth,
  checkUpstream,
  fetchBackendMetrics,
  fetchModelList,
  type UpstreamCheck,
} from "../proxy/upstream/probe.ts";
import type { Certificate } from "../runtime/certificate.ts";
import { startBackups } from "../store/open.ts";
import type { Store } from "../store/store.ts";
import { Watch } from "../watching/watch.ts";
import { createFacts, type FactsOptions } from "./facts.ts";
import { startNotices } from "./send-notices.ts";
import { measureDisk } from "../telemetry/descriptors.ts";
import { createMetrics, type Metrics } from "../telemetry/metrics.ts";
import { createInFlight, type InFlight, createUpstreamFailures } from "../telemetry/observers.ts";
import { pollBackendCounters, pollBackends } from "../telemetry/poll-backend-counters.ts";
import type { SlowValues } from "../telemetry/slow-gauges.ts";
import type { AggregateStats, ProcessStats } from "../telemetry/stats.ts";
import { createTrafficRecorder } from "../telemetry/traffic-recorder.ts";
import type { MonotonicClock, WallClock } from "../time/clock.ts";
import { build } from "../config/version.ts";

export interface ServerOptions {
  clock: WallClock;
  log: Log;
  /** Shows the operator what belongs into no log line: the first password. */
  print: (text: string) => void;
  /** Absent: what the environment says. */
  catalog?: CurrentCatalog;
  /** What the settings were read from; the console shows them. */
  environment?: Environment;
  /** Only if other processes share the ports: takes this one's stats and returns those of all. */
  shareStats?: ((own: ProcessStats) => AggregateStats) | undefined;
  /** How many these are, this one included. */
  processes?: number;
  /** The places at the backends that these processes share. */
  places?: (Places & BackendStates) | undefined;
  /** Whether these processes may log one more refused request of a source. Never rejects. */
  mayLogShared?: ((source: string) => Promise<boolean>) | undefined;
  /** What their parent knows of the machine. */
  machine?: FactsOptions["machine"] | undefined;
}

/** The sections of the configuration that services need. */
export type ServicesConfig = Pick<
  Config,
  "upstream" | "rewrite" | "notices" | "queue" | "limitsFallback" | "metrics" | "storage" | "listen"
>;

interface Opened extends ServerOptions {
  store: Store;
  certificate: Certificate | undefined;
}

export type Services = ReturnType<typeof createServices>;

export const monotonic: MonotonicClock = performance.now.bind(performance);

/** What both sides of a server are made of. */
export function createServices(config: ServicesConfig, opened: Opened) {
  const { store, clock, log } = opened;
  const [draining, stopping] = [new AbortController(), new AbortController()];
  const catalog = opened.catalog ?? fixedCatalog(catalogFromEnvironment(config));
  const inFlight = createInFlight();
  const isRunning = (): boolean => inFlight.count() > 0;
  const revocations = createRevocations({ store: store.keys, clock, monotonic, isRunning });
  const { places, stopProbing } = placesOf(config.queue, { ...opened, catalog, inFlight });
  const checkBackends = createCheck(catalog, () => backendStates.list());
  const recorder = createTrafficRecorder({ write: store.traffic.add, clock, log });
  const metrics = createMetrics({
    ...build,
    perKey: config.metrics.perKey,
    waiting: () => ledger.waiting(),
    refusedRequests: () => ledger.refusedRequests(),
    problems: () => watched.watch.own(),
    areLimitsDegraded: () => admissions.isDegraded(),
    inFlight: inFlight.count,
    droppedRequests: () => ledger.droppedRequests(),
    slow: slowValuesOf(() => checkBackends(AbortSignal.timeout(probeMs)), config.storage, store),
    queue: { places: config.queue.places, depth: () => queue.depth() },
    backends: catalog.get().file === undefined ? undefined : () => backendStates.list(),
  });
  const logsRequests = config.storage.retention.requestLog.days > 0;
  const ledger = createLedger({ store: store.usage, clock, log, observer: metrics, logsRequests });
  const { processes = 1 } = opened;
  const admissions = createAdmissions({
    store: store.limits,
    monotonic,
    clock,
    log,
    fallback: config.limitsFallback,
    processes,
    areCountsWaiting: ledger.areCountsWaiting,
  });
  const queue = createQueue(config.queue, { catalog, places, stopping, revocations, admissions, clock }, processes);
  const stats = statsOf(opened, metrics, inFlight);
  const backendStates = withLoad(places, async () =>
    queue.hasPlaces ? undefined : { inFlight: await stats.inFlight(), waiting: queue.depth().waiting },
  );
  const engines = createEngines({
    backends: () => catalog.get().backends,
    isIn: (name) => places.isAnyIn([name]),
    find: findEngine,
    monotonic,
  });
  const learning = startLearning(catalog, places, engines);
  const stopCounters = pollCounters(opened, catalog, backendStates);
  const takesAll = (): boolean => catalog.get().backends.length === 1 && config.queue.backendWaitMs === 0;
  const upstreamFailures = createUpstreamFailures(clock, log, takesAll);
  const instance = `${hostname()}/${process.pid}`;
  const watching = { ...opened, catalog, backendStates, checkBackends, upstreamFailures, ledger, admissions };
  const watched = watchOf(config, instance, watching);
  const stopBackups = startBackups(config.storage, opened);
  return {
    ...opened,
    catalog,
    engines,
    backendStates,
    sharedDraining: shareBackends({ store: store.backends, states: backendStates, catalog, instance, clock }),
    backendModels: createBackendModels({
      catalog,
      fetchList: fetchModelList,
      monotonic,
      onFailed: (backend, error) => log.debug("Backend's models not listed", { backend, error: String(error) }),
      onOddName: (kind, fields) => log[kind === "shared" ? "info" : "warn"](oddNames[kind], fields),
    }),
    ledger,
    /** Requests are logged one by one in the database. */
    logsRequests,
    clientAddress: clientAddressOf(config.listen.trustedHops),
    admissions,
    revocations,
    metrics,
    recorder,
    async stopPolling() {
      stopCounters();
      clearInterval(learning);
      await stopBackups();
    },
    inFlight,
    queue,
    upstreamFailures,
    ...watched,
    /** Adds up all processes that share the ports. */
    stats,
    /** Unless these processes share the places. */
    stopProbing,
    /** Refuses what comes over connections that are still open. */
    draining,
    /** Ends what still runs when the grace is over. */
    stopping,
  };
}

/** What finds out, what keeps, and what tells what is wrong. */
function watchOf(
  { limitsFallback: fallback, storage: { databaseUrl, dataDir, backup }, notices }: ServicesConfig,
  instance: string,
  known: Opened & Omit<FactsOptions, "monotonic" | "fallback" | "server" | "dataDir" | "makesBackups">,
) {
  const server = databaseUrl === undefined ? undefined : "PostgreSQL";
  const facts = createFacts({ ...known, monotonic, fallback, server, dataDir, makesBackups: backup !== undefined });
  const { store, clock, log } = known;
  const watch = new Watch<Change>({ gather: facts.gather, store: store.states, process: instance, clock });
  return { facts, watch, notices: startNotices({ config: notices, store, watch, clock, log }) };
}

const oddNames: Record<OddName, string> = {
  not_allowed: "Backend lists names that MODELS_FILE could not have, which are left out",
  shared: "Backend lists models that another one lists too, so each gets part of their requests",
  other_spelling: "Backend lists another one's models in other spelling, which are left out",
};

/** How long the backend may take to count as up. */
const probeMs = 5_000;

/** Those of each backend; of the only one, without a file of models, under no name. */
const pollCounters = ({ store, clock, log }: Opened, catalog: CurrentCatalog, backendStates: BackendStates) =>
  pollBackends(catalog, (backend) =>
    pollBackendCounters({
      fetchMetrics: (signal) => fetchBackendMetrics(backend, signal),
      write: (counters) => {
        const name = catalog.get().file === undefined ? undefined : backend.name;
        return store.reconciliation.add({ ...counters, backend: name, at: clock() });
      },
      onRestarted: () => backendStates.hasRestarted(backend.name),
      log,
    }),
  );

/**
 * The backends as those see them who grant places. Requests that need none are not known there.
 * @param load of the only backend, while requests need no place
 */
const withLoad = (
  { list, ...tell }: BackendStates,
  load: () => Promise<Pick<BackendStatus, "inFlight" | "waiting"> | undefined>,
): BackendStates => ({
  async list() {
    const [states, only] = await Promise.all([list(), load()]);
    return only === undefined ? states : states.map((state) => Object.assign(state, only));
  },
  ...tell,
});

/** So often it is looked whether a backend is to be asked. */
const learningMs = 2_000;

/** Has backends say which engines they are, if rules go by that: no request waits for it. */
function startLearning(catalog: CurrentCatalog, places: Places, engines: Engines): Timer {
  const learn = (): void => {
    if (goesByClient(catalog.get())) void engines.learn();
  };
  learn();
  catalog.onReplaced(learn);
  places.onChanged(learn);
  return setInterval(learn, learningMs);
}

/** @returns whether the only backend responds, or one of several is in */
function createCheck(catalog: CurrentCatalog, list: BackendStates["list"]) {
  return async (signal: AbortSignal): Promise<UpstreamCheck> => {
    const [first, ...others] = catalog.get().backends;
    if (first !== undefined && others.length === 0) return checkUpstream(first, signal);
    const isAnyIn = (await list()).some(({ state }) => state === "in");
    return isAnyIn ? { ok: true } : { ok: false, cause: "none_in" };
  };
}

/** What `/metrics` reports of the server's surroundings. */
const slowValuesOf = (
  check: () => Promise<UpstreamCheck>,
  { dataDir, backup }: Config["storage"],
  store: Store,
): SlowValues => ({
  upstreamUp: async () => (await check()).ok,
  database: store.size,
  disk: () => measureDisk(dataDir),
  backup: backup && (async () => (await store.database.backups()).succeeded?.at),
});

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

function placesOf(
  queue: Config["queue"],
  { places, clock, log, catalog, inFlight }: Opened & { catalog: CurrentCatalog; inFlight: InFlight },
): { places: Places & BackendStates; stopProbing: () => void } {
  if (places !== undefined) return { places, stopProbing() {} };
  const own = createLocalPlaces({
    ...queue,
    catalog,
    probe: checkHealth,
    received: async () => inFlight.list(),
    clock,
    monotonic,
    log,
  });
  return { places: own, stopProbing: () => own[Symbol.dispose]() };
}

function createQueue(
  { timeoutMs, lowTimeoutMs, backendWaitMs, maxWaiting }: Config["queue"],
  parts: Pick<Services, "catalog" | "stopping" | "revocations" | "admissions" | "clock"> & { places: Places },
  processes: number,
): RequestQueue {
  const { catalog, places, admissions } = parts;
  /** All but one backend that takes any number of requests at any time. */
  const hasPlaces = (): boolean => {
    const [first, ...others] = catalog.get().backends;
    const isLimited = first?.maxConcurrency !== undefined || first?.maxPrefillTokens !== undefined;
    const takesAll = !isLimited && backendWaitMs === 0 && places.isAnyIn([first?.name ?? ""]);
    return others.length > 0 || !takesAll;
  };
  const queue = new RequestQueue({
    admit: admissions.admit,
    hasOthers: admissions.hasOthers,
    places,
    hasPlaces: hasPlaces(),
    timeoutMs,
    lowTimeoutMs,
    backendWaitMs,
    maxInLine: Math.ceil(maxWaiting / processes),
    monotonic,
    wall: parts.clock,
    stopping: parts.stopping.signal,
    onKeyEnded: parts.revocations.onRevoked,
  });
  const update = (): void => void (queue.hasPlaces = hasPlaces());
  catalog.onReplaced(update);
  places.onChanged(update);
  return queue;
}
