import { Elysia } from "elysia";
import type { Log } from "../log/log.ts";
import type { Retention } from "../store/retention.ts";
import type { Store } from "../store/store.ts";
import type { WallClock } from "../time/clock.ts";
import { getMe, logIn, logOut, requireSession } from "./session/auth.ts";
import { compressJson } from "./http/compression.ts";
import * as contracts from "./http/contracts.ts";
import { requireCsrfToken } from "./session/csrf.ts";
import { adminHeaders, toApiError } from "./http/errors.ts";
import {
  addGpuSamples,
  getPushGpuScript,
  listGpuHistory,
  listGpuSamples,
  listPowerHistory,
  requireApiKey,
} from "./gpu/gpu.ts";
import { createHealth, getHealth, getReadiness, type UpstreamProbe } from "./operations/health.ts";
import { type ExplainDeps, explainRequest } from "./requests/explain.ts";
import { listFailures, listTokenless } from "./requests/failures.ts";
import { getLatency } from "./requests/latency.ts";
import { createKey, deleteKey, type EndingDeps, listKeys, rotateKey, updateKey } from "./keys/keys.ts";
import { createLogin } from "./session/login.ts";
import { grafanaDashboard } from "../watching/dashboard.ts";
import { getAlerts, getMetrics, requireMetricsTokenOrSession } from "./operations/metrics.ts";
import { getModelUsage } from "./usage/models.ts";
import { notFoundRoutes } from "./http/not-found.ts";
import { type OpenApiDocument, openApiDocument } from "./http/openapi.ts";
import { endInFlight, type InFlightDeps, listInFlight } from "./requests/in-flight.ts";
import * as insight from "./http/insight-contracts.ts";
import { getOverview } from "./operations/overview.ts";
import { getOwnKey } from "./keys/own-key.ts";
import { getPrices, setPrices } from "./usage/prices.ts";
import { changePassword, endOtherSessions, endSession, listSessions } from "./session/own-account.ts";
import { parseIntegers } from "./http/query.ts";
import { getReconciliation } from "./usage/reconciliation.ts";
import { streamRequests } from "./requests/stream.ts";
import { listRequests } from "./requests/requests.ts";
import { getSettings, type SettingsDeps } from "./operations/settings.ts";
import { createSessions } from "./session/session.ts";
import { getUsageChart, listUsagePoints } from "./usage/chart.ts";
import { getUsageByDay, listUsageByDayAndKey } from "./usage/days.ts";
import { getUsageSummary, getUsageTotal, listDailyUsage, listUsageHistory } from "./usage/usage.ts";

export interface AdminDeps {
  store: Store;
  config: {
    username: string;
    /** Lets a Prometheus server read `/metrics`; undefined: only a session does. */
    metricsToken: string | undefined;
  };
  /** Signs session cookies. */
  signingKey: string;
  clock: WallClock;
  log: Log;
  /** The client's address as the outermost trusted proxy saw it. */
  clientAddress: (request: Request) => string;
  metricsText: () => Promise<string>;
  metricsContentType: string;
  /** Called for each accepted POST of GPU samples. */
  gpuSamplesReceived: (stored: number, skipped: number) => void;
  /** `/v1` is served on another port than the console. */
  separatePorts: boolean;
  /** Requests under `/v1` that have not ended. */
  inFlight: () => Promise<number>;
  upstreamUrl: string;
  /** Whether the backend responds. Called at most once every few seconds. */
  probeUpstream: (signal: AbortSignal) => Promise<UpstreamProbe>;
  /** Since when no request of a client got a response from the backend, epoch milliseconds. Of this process. */
  requestsFailSince: () => number | undefined;
  running: InFlightDeps["running"];
  /** @returns whether there was such a request */
  endRequest: (id: string) => Promise<boolean>;
  endRunning: EndingDeps["endRunning"];
  explain: ExplainDeps["explain"];
  settings: SettingsDeps["settings"];
  versions: SettingsDeps["versions"];
  passwordFromEnvironment: boolean;
  retention: Retention;
  /** PROXY_FORCE_STREAM_USAGE. */
  forceStreamUsage: string;
  /** Aborts when the server drains; ends responses that have no end. */
  draining: AbortSignal;
  /** Of this process. */
  countsState: () => "ok" | "waiting" | "partly refused";
}

/** Every route of the admin API, grouped by what guards it. The console's client is typed by the inferred return type. */
export function adminRoutes(deps: AdminDeps) {
  const sessions = createSessions(deps);
  const login = createLogin({ ...deps, sessions });
  const health = createHealth(deps);
  const context = { ...deps, sessions, login, health };

  // Each group is an app of its own: in one app that has hooks already, Elysia (1.4.30) also runs a guard for the
  // routes above it. Remove when a hook applies only to the routes below it.

  const open = new Elysia()
    .get("/healthz", getHealth, contracts.getHealth)
    .get("/readyz", getReadiness(context), contracts.getReadiness)
    .get("/push-gpu.sh", getPushGpuScript, contracts.getPushGpuScript)
    .post("/api/login", logIn(context), contracts.logIn)
    .get("/api/me", getMe(context), contracts.getMe);

  const withMetricsTokenOrSession = new Elysia()
    .onBeforeHandle(requireMetricsTokenOrSession(context))
    .get("/metrics", getMetrics(context), contracts.getMetrics)
    .get("/alerts.yaml", getAlerts, contracts.getAlerts)
    .get("/grafana.json", grafanaDashboard, contracts.getDashboard);

  const withGpuKey = new Elysia()
    .derive(requireApiKey(context, "gpu"))
    .post("/api/gpu-stats", addGpuSamples(context), contracts.addGpuSamples);

  const withInferenceKey = new Elysia()
    .derive(requireApiKey(context, "inference"))
    .get("/api/own-key", getOwnKey(context), contracts.getOwnKey);

  const withSession = new Elysia()
    .derive(requireSession(context))
    .onTransform(parseIntegers)
    .mapResponse(compressJson)
    .get("/api/keys", listKeys(context), contracts.listKeys)
    .get("/api/usage/summary", getUsageSummary(context), contracts.getUsageSummary)
    .get("/api/usage/total", getUsageTotal(context), contracts.getUsageTotal)
    .get("/api/usage/daily", listDailyUsage(context), contracts.listDailyUsage)
    .get("/api/usage/history", listUsageHistory(context), contracts.listUsageHistory)
    .get("/api/usage/points", listUsagePoints(context), contracts.listUsagePoints)
    .get("/api/usage/chart", getUsageChart(context), contracts.getUsageChart)
    .get("/api/usage/by-day", getUsageByDay(context), contracts.getUsageByDay)
    .get("/api/usage/by-day-and-key", listUsageByDayAndKey(context), contracts.listUsageByDayAndKey)
    .get("/api/gpu-stats", listGpuSamples(context), contracts.listGpuSamples)
    .get("/api/gpu-stats/power-history", listPowerHistory(context), contracts.listPowerHistory)
    .get("/api/gpu-stats/history", listGpuHistory(context), contracts.listGpuHistory)
    .get("/api/overview", getOverview(context), contracts.getOverview)
    .get("/api/requests", listRequests(context), insight.listRequests)
    .get("/api/requests/stream", streamRequests(context), insight.streamRequests)
    .get("/api/in-flight", listInFlight(context), insight.listInFlight)
    .get("/api/usage/models", getModelUsage(context), insight.getModelUsage)
    .get("/api/usage/without-tokens", listTokenless(context), insight.listTokenless)
    .get("/api/latency", getLatency(context), insight.getLatency)
    .get("/api/failures", listFailures(context), insight.listFailures)
    .get("/api/reconciliation", getReconciliation(context), insight.getReconciliation)
    .get("/api/prices", getPrices(context), insight.getPrices)
    .get("/api/settings", getSettings(context), insight.getSettings)
    .get("/api/sessions", listSessions(context), insight.listSessions)
    .get("/api/openapi.json", (): OpenApiDocument => openApiDocument(app), contracts.getOpenApi);

  const withSessionAndCsrfToken = new Elysia()
    .derive(requireSession(context))
    .derive(requireCsrfToken(context))
    .post("/api/keys", createKey(context), contracts.createKey)
    .patch("/api/keys/:id", updateKey(context), contracts.updateKey)
    .post("/api/keys/:id/rotate", rotateKey(context), contracts.rotateKey)
    .delete("/api/keys/:id", deleteKey(context), contracts.deleteKey)
    .delete("/api/in-flight/:id", endInFlight(context), insight.endInFlight)
    .put("/api/prices", setPrices(context), insight.setPrices)
    .post("/api/explain", explainRequest(context), insight.explainRequest)
    .post("/api/password", changePassword(context), insight.changePassword)
    .delete("/api/sessions/:id", endSession(context), insight.endSession)
    .delete("/api/sessions", endOtherSessions(context), insight.endOtherSessions)
    .post("/api/logout", logOut(context), contracts.logOut);

  const app = new Elysia()
    .onError(({ error, set, path, status }) => {
      const { status: code, message, headers } = toApiError(error, path, deps.log);
      Object.assign(set.headers, headers);
      return status(code, { error: message });
    })
    .onTransform(({ set }) => {
      Object.assign(set.headers, adminHeaders);
    })
    .use(open)
    .use(withMetricsTokenOrSession)
    .use(withGpuKey)
    .use(withInferenceKey)
    .use(withSession)
    .use(withSessionAndCsrfToken);
  return app.use(notFoundRoutes(app.routes));
}
