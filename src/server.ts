import { type Admissions, createAdmissions } from "./admission/admission.ts";
import { createApp, createProxyApp, createSeparateAdminApp } from "./app.ts";
import { addressScope, clientAddress } from "./admin/client-address.ts";
import { describeOwnKey } from "./admin/own-key.ts";
import { bootstrapAdmin } from "./admin/bootstrap.ts";
import type { AdminDeps } from "./admin/routes.ts";
import type { MonotonicClock, WallClock } from "./time/clock.ts";
import type { Config, Environment } from "./config.ts";
import type { RequestObserver } from "./domain.ts";
import { startFetchThread } from "./runtime/fetch-thread.ts";
import { createKeyEndings, type KeyEndings } from "./admission/key-endings.ts";
import { createLedger, type Ledger } from "./ledger.ts";
import { type Connections, createConnections, type Listener, listen } from "./runtime/listen.ts";
import type { Log } from "./log/log.ts";
import { createLocalPlaces } from "./admission/places.ts";
import { createMetrics, type Metrics, metricsContentType } from "./telemetry/metrics.ts";
import { createInFlight, type InFlight, observeAll, observePerTick } from "./telemetry/observers.ts";
import { createDescriptorLog } from "./telemetry/descriptors.ts";
import { startReconciler } from "./telemetry/reconciler.ts";
import { createRequestLog } from "./telemetry/request-log.ts";
import { createUpstreamFailures, type UpstreamFailures } from "./telemetry/upstream-failures.ts";
import { createTrafficRecorder, type TrafficRecorder } from "./telemetry/traffic-recorder.ts";
import { createStoredRequestLog } from "./telemetry/stored-request-log.ts";
import { addressOf, connectTo, createConnectTimeout } from "./proxy/upstream/connect-timeout.ts";
import { countConnecting } from "./proxy/upstream/connecting-sockets.ts";
import { createForward } from "./proxy/upstream/forward.ts";
import { checkUpstream, fetchBackendMetrics } from "./proxy/upstream/probe.ts";
import { createReadTimeouts } from "./proxy/upstream/read-timeout.ts";
import { errorResponse } from "./proxy/errors.ts";
import { createHeldBytes } from "./proxy/request/held-bytes.ts";
import { explainRewrite } from "./proxy/rewrite/explain.ts";
import { createRequestQueue, type Places, type RequestQueue } from "./proxy/request/queue.ts";
import { createProxy, guardedRoutes, type Proxy } from "./proxy/routes.ts";
import type { AggregateStats, ProcessStats } from "./supervisor/protocol.ts";
import { openStore } from "./store/open.ts";
import type { Store } from "./store/store.ts";
import { reportSettings } from "./settings-report.ts";
import { build } from "./version.ts";

export interface Server {
  /** Where `/v1` answers. */
  url: string;
  /** Where `/api` and the console answer. */
  adminUrl: string;
  /**
   * Refuses new requests, lets running ones finish within the grace, ends the rest as broken, and writes what is left.
   * @returns whether all counts were written
   */
  stop(): Promise<boolean>;
}

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
}

const connectTimeoutMs = 10_000;
/** For error frames and resets to go out before the process does. */
const lastWordsMs = 200;
/** For the counts of responses that were cut to reach the ledger. */
const lastCountsMs = 2000;
/** Counts are given at least this time to be written, however much of the grace is left. */
const minWriteMs = 5000;

const monotonic: MonotonicClock = () => performance.now();

export async function startServer(config: Config, options: ServerOptions): Promise<Server> {
  const { clock, log } = options;
  await startFetchThread();
  const { dataDir, databaseUrl, requestLog } = config;
  const store = await openStore({ dataDir, databaseUrl, requestLog, clock, log });
  const inFlight = createInFlight();
  const metrics = createMetrics({
    ...build,
    perKey: config.metrics.perKey,
    waiting: () => ledger.waiting(),
    refusedRequests: () => ledger.refusedRequests(),
    inFlight: inFlight.count,
    droppedRequests: () => ledger.droppedRequests(),
    tokenless: () => recorder.tokenlessCount(),
  });
  const logsRequests = requestLog.days > 0;
  const ledger = createLedger({ store: store.usage, clock, log, observer: metrics, logsRequests });
  const { count, list: running, end: endRequest } = inFlight;
  const stats = options.shareStats?.({ metrics: metrics.snapshot, inFlight: count, running, endRequest }) ?? {
    metricsText: metrics.text,
    inFlight: async () => count(),
    running: async () => running(),
    endRequest: async (id: string) => endRequest(id),
  };
  const recorder = createTrafficRecorder({ write: store.traffic.add, clock, log });
  const stopReconciler = startReconciler({
    fetchMetrics: (signal) => fetchBackendMetrics(config.upstream, signal),
    write: (counters) => store.reconciliation.add({ ...counters, at: clock() }),
    log,
  });
  const admissions = createAdmissions({ store: store.limits, monotonic, log });
  const endings = createKeyEndings({ store: store.limits, clock, isRunning: () => inFlight.count() > 0 });
  const draining = new AbortController();
  const stopping = new AbortController();
  try {
    const listeners = await listenOn(config, {
      ...options,
      store,
      ledger,
      admissions,
      endings,
      metrics,
      recorder,
      inFlight,
      upstreamFailures: createUpstreamFailures(clock),
      stats,
      draining,
      stopping,
    });
    // Of several processes none announces the address that their parent announces for them all.
    const announce = options.shareStats === undefined ? log.info : log.debug;
    announce("Listening", {
      proxy: `${listeners.proxy.url}/v1`,
      console: listeners.admin.url,
      backend: config.upstream.baseUrl,
      version: build.version,
    });
    return {
      url: listeners.proxy.url,
      adminUrl: listeners.admin.url,
      async stop() {
        const graceEnds = monotonic() + config.shutdownGraceMs;
        log.info("Stopping: running responses may finish", { graceMs: config.shutdownGraceMs });
        draining.abort();
        stopReconciler();
        await drain(new Set(Object.values(listeners)), config.shutdownGraceMs, stopping);
        await Promise.race([inFlight.idle(), Bun.sleep(lastCountsMs)]);
        await Promise.race([recorder.close(), Bun.sleep(lastCountsMs)]);
        const isComplete = await ledger.close(Math.max(minWriteMs, graceEnds - monotonic()));
        await admissions.close();
        endings.close();
        await store.close();
        metrics.close();
        log.info("Stopped");
        return isComplete;
      },
    };
  } catch (error) {
    stopReconciler();
    await ledger.close();
    await admissions.close();
    endings.close();
    await store.close();
    metrics.close();
    throw error;
  }
}

interface ServerParts extends ServerOptions {
  store: Store;
  ledger: Ledger;
  admissions: Admissions;
  endings: KeyEndings;
  metrics: Metrics;
  recorder: TrafficRecorder;
  inFlight: InFlight;
  upstreamFailures: UpstreamFailures;
  /** Of all processes that share the ports. */
  stats: AggregateStats;
  /** Refuses what comes over connections that are still open. */
  draining: AbortController;
  /** Ends what still runs when the grace is over. */
  stopping: AbortController;
}

interface Listeners {
  proxy: Listener;
  admin: Listener;
}

/** One listener for both sides, or one for each where `ADMIN_PORT` says so. */
async function listenOn(config: Config, parts: ServerParts): Promise<Listeners> {
  const connections = createConnections();
  const proxy = proxyOf(config, parts, connections);
  const shared = { shared: parts.shareStats !== undefined, internalError };
  const atProxyPort = { ...shared, host: config.host, port: config.port, connections };
  if (config.adminPort === undefined) {
    const app = createApp({ proxy, admin: await adminDepsOf(config, parts, connections) });
    const listener = listen({ ...atProxyPort, ...guardedRoutes(proxy, app.fetch) });
    return { proxy: listener, admin: listener };
  }
  const adminConnections = createConnections();
  const adminApp = createSeparateAdminApp(await adminDepsOf(config, parts, adminConnections));
  const atAdminPort = { ...shared, host: config.adminHost, port: config.adminPort, connections: adminConnections };
  const admin = listen({ ...atAdminPort, fetch: adminApp.fetch });
  try {
    return { admin, proxy: listen({ ...atProxyPort, ...guardedRoutes(proxy, createProxyApp(proxy).fetch) }) };
  } catch (error) {
    await admin.cut();
    throw error;
  }
}

const internalError = (): Response => errorResponse("internal");

function proxyOf(config: Config, parts: ServerParts, connections: Connections): Proxy {
  const { log } = parts;
  const { baseUrl } = config.upstream;
  const address = addressOf(baseUrl);
  const startReadTimeout = createReadTimeouts(monotonic);
  return createProxy({
    config,
    sseKeepaliveMs: config.sseKeepaliveMs,
    backend: new URL(baseUrl).host,
    findKey: parts.store.keys.findActive,
    record: parts.ledger.record,
    admit: parts.admissions.admit,
    findOwnKey: describeOwnKey({ store: parts.store, clock: parts.clock }),
    queue: config.queue && createQueue(config.queue, parts),
    startReadTimeout,
    wall: parts.clock,
    monotonic,
    log,
    forward: createForward({
      baseUrl,
      fetch,
      connectTimeout: createConnectTimeout({
        connect: connectTo(address),
        countConnecting: () => countConnecting(address.port),
        limitMs: connectTimeoutMs,
        monotonic,
      }),
      startReadTimeout,
      stopping: parts.stopping.signal,
      onKeyEnded: parts.endings.onEnded,
      monotonic,
    }),
    observer: observeAll(parts.inFlight, observePerTick(observeAll(...observersOf(config, parts)))),
    peerAddress: connections.peerAddress,
    clientAddress: clientAddressOf(config),
    heldBytes: createHeldBytes(config.maxHeldBytes, config.maxHeldBytes / 4),
    disableIdleTimeout: connections.disableIdleTimeout,
    isStopping: () => parts.draining.signal.aborted,
  });
}

function observersOf(config: Config, parts: ServerParts): RequestObserver[] {
  const { metrics, recorder, upstreamFailures, ledger, log, clock } = parts;
  const observers = [metrics, recorder, upstreamFailures, createRequestLog(log), createDescriptorLog(log, monotonic)];
  if (config.requestLog.days === 0) return observers;
  const { logRequest } = ledger;
  const onOmitted = metrics.requestOmitted;
  return [...observers, createStoredRequestLog({ logRequest, networkOf: addressScope, onOmitted, clock })];
}

function createQueue(queue: NonNullable<Config["queue"]>, { places, stopping, endings }: ServerParts): RequestQueue {
  return createRequestQueue({
    places: places ?? createLocalPlaces(queue),
    timeoutMs: queue.timeoutMs,
    stopping: stopping.signal,
    onKeyEnded: endings.onEnded,
  });
}

async function adminDepsOf(
  config: Config,
  { store, ledger, clock, log, print, metrics, stats, upstreamFailures, draining, environment = {} }: ServerParts,
  connections: Connections,
): Promise<AdminDeps> {
  const { username, password, secretKey } = config.admin;
  const { signingKey } = await bootstrapAdmin({
    store,
    config: { username, password, secretKey },
    dataDir: config.dataDir,
    print,
  });
  return {
    store,
    config: { username, metricsToken: config.metrics.token },
    signingKey,
    clock,
    log,
    clientAddress: (request) => clientAddressOf(config)(request, connections.peerAddress(request)),
    metricsText: stats.metricsText,
    metricsContentType,
    gpuSamplesReceived: metrics.gpuSamplesReceived,
    separatePorts: config.adminPort !== undefined,
    inFlight: stats.inFlight,
    upstreamUrl: config.upstream.baseUrl,
    probeUpstream: (signal) => checkUpstream(config.upstream, signal),
    requestsFailSince: upstreamFailures.since,
    running: stats.running,
    endRequest: stats.endRequest,
    explain: (path, body) => explainRewrite(path, body, config.rewrite),
    settings: () => reportSettings(environment),
    versions: { tollgate: build.version, commit: build.commit, bun: Bun.version },
    passwordFromEnvironment: password !== undefined,
    requestLog: config.requestLog,
    forceStreamUsage: config.rewrite.forceStreamUsage,
    draining: draining.signal,
    countsState: ledger.state,
  };
}

function clientAddressOf({ trustProxy }: Config) {
  return (request: Request, peerAddress = ""): string =>
    clientAddress({
      forwardedFor: trustProxy === 0 ? null : request.headers.get("x-forwarded-for"),
      socketAddress: peerAddress,
      trustedHops: trustProxy,
    });
}

async function drain(listeners: Set<Listener>, graceMs: number, stopping: AbortController): Promise<void> {
  const drained = Promise.all([...listeners].map((listener) => listener.drain()));
  const inTime = await Promise.race([drained.then(() => true), Bun.sleep(graceMs).then(() => false)]);
  stopping.abort();
  if (inTime) return;
  await Promise.race([drained, Bun.sleep(lastWordsMs)]);
  for (const listener of listeners) await listener.cut();
}
