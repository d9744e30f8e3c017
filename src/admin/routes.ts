import { Elysia } from "elysia";
import type { WallClock } from "../time/clock.ts";
import { findCredential } from "../credentials.ts";
import type { Log } from "../log/log.ts";
import { metricsContentType } from "../telemetry/metrics.ts";
import { dayOf } from "../time/seoul.ts";
import type { Store } from "../store/store.ts";
import { acceptedBody, readJsonObject } from "./body.ts";
import * as contracts from "./contracts.ts";
import { readUnforgedBody } from "./csrf.ts";
import { ApiError, authenticationRequired, errorBodyOf } from "./errors.ts";
import { gpuSampleBody, parseGpuReadings } from "./gpu.ts";
import { streamJson } from "./json-stream.ts";
import {
  fullKeyBody,
  keyNotFound,
  maskedKeyBody,
  maskedKeysJson,
  parseKeyChange,
  parseKeyId,
  parseNewKey,
} from "./keys.ts";
import { createLogin } from "./login.ts";
import { openApiDocument } from "./openapi.ts";
import { createHealth, type Health, presentsMetricsToken } from "./health.ts";
import { refuseOtherRequests } from "./not-found.ts";
import { getOverview } from "./overview.ts";
import { clearedCookie, createSessions, sessionCookie, type Sessions } from "./session.ts";
import { bucketRange, firstDay, historyHead, powerPointBody, usageTotal } from "./usage.ts";

// The functions that declare routes have no return types: what Elysia infers is what the console's client is made from.
/* oxlint-disable typescript/explicit-function-return-type, typescript/explicit-module-boundary-types */

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
  /** The client as the outermost trusted proxy saw it. */
  clientAddress: (request: Request) => string;
  metricsText: () => Promise<string>;
  /** One POST of GPU samples went through. */
  gpuSamplesReceived: (stored: number, skipped: number) => void;
  /** `/v1` does not answer where the console does. */
  separatePorts: boolean;
  /** Requests under `/v1` that have not ended. */
  inFlight: () => Promise<number>;
  /** Whether the backend answers; may reject. Asked once every few seconds, and aborted by `signal`. */
  probeUpstream: (signal: AbortSignal) => Promise<{ ok: boolean }>;
}

interface AdminContext extends AdminDeps {
  sessions: Sessions;
  operations: Health;
}

/** Everything on the admin side but the console's files. */
export function adminRoutes(deps: AdminDeps) {
  const parts = { ...deps, sessions: createSessions(deps), operations: createHealth(deps) };
  const gate = sessionGate(parts);

  const app = new Elysia()
    .onError(({ error, set, path, status }) => {
      const refusal = errorBodyOf(error, deps.log, path);
      Object.assign(set.headers, refusal.headers);
      return status(refusal.status, refusal.body);
    })
    .onTransform(({ set }) => {
      set.headers["cache-control"] = "no-store";
      set.headers["x-content-type-options"] = "nosniff";
    })
    .use(operationsRoutes(parts))
    .use(openRoutes(parts))
    .use(keyRoutes(parts, gate))
    .use(usageRoutes(parts, gate))
    .use(gpuRoutes(parts, gate));
  const whole = app.use(consoleRoutes(parts, gate, () => openApiDocument(app)));
  return whole.use(refuseOtherRequests(whole.routes));
}

/**
 * Lets who has a session by, and for whatever changes something who has its CSRF token too, before anything else of the
 * request is judged. An app uses it before its first route: Elysia (1.4.30) adds a hook to earlier routes as well where
 * the app has hooks of that kind already.
 * Remove when a hook applies only to later routes.
 */
function sessionGate({ sessions }: AdminContext) {
  return new Elysia()
    .derive({ as: "scoped" }, async ({ request, cookie: { session: cookie } }) => {
      const session = await sessions.find(request.headers);
      if (session === undefined) throw authenticationRequired();
      cookie?.set(sessionCookie(session));
      return { session, json: await readUnforgedBody(request, session.csrfToken) };
    })
    .onTransform({ as: "scoped" }, ({ query }) => readIntegers(query));
}

type SessionGate = ReturnType<typeof sessionGate>;

/**
 * Digits alone are an integer here; Elysia's own reading takes `0x7`, `1e1` and `7.0` too.
 * Remove when `t.Integer` takes only digits in a query (Elysia 1.4.30).
 */
function readIntegers(query: Record<string, unknown>): void {
  for (const name of ["days", "bucket_minutes"]) {
    const text = query[name];
    if (text !== undefined) query[name] = typeof text === "string" && /^\d+$/.test(text) ? Number(text) : Number.NaN;
  }
}

function operationsRoutes({ operations, sessions, config, metricsText }: AdminContext) {
  return new Elysia()
    .get("/healthz", () => ({ status: "ok" as const }), contracts.health)
    .get(
      "/readyz",
      async ({ status }) => {
        const { database, upstream } = await operations.readiness();
        return status(database ? 200 : 503, {
          status: database ? "ready" : "unavailable",
          database: database ? "ok" : "not writable",
          upstream: upstream ? "ok" : "not answering",
        });
      },
      contracts.readiness,
    )
    .get(
      "/metrics",
      async ({ request: { headers } }) => {
        const scraper = presentsMetricsToken(headers, config.metricsToken);
        if (!scraper && (await sessions.find(headers)) === undefined) throw authenticationRequired();
        return new Response(await metricsText(), { headers: { "content-type": metricsContentType } });
      },
      contracts.metrics,
    );
}

/** What needs no session. */
function openRoutes(parts: AdminContext) {
  const { store, clock, sessions, clientAddress, gpuSamplesReceived } = parts;
  const login = createLogin(parts);

  return new Elysia()
    .post(
      "/api/login",
      async ({ request, cookie: { session: cookie } }) => {
        const body = acceptedBody(await readJsonObject(request));
        const session = await login(body, clientAddress(request));
        cookie?.set(sessionCookie(session));
        return { ok: true as const, username: session.username, csrf_token: session.csrfToken };
      },
      contracts.login,
    )
    .get(
      "/api/me",
      async ({ request, cookie: { session: cookie }, status }) => {
        const session = await sessions.find(request.headers);
        if (session === undefined) return status(401, { authenticated: false as const });
        cookie?.set(sessionCookie(session));
        return { authenticated: true as const, username: session.username, csrf_token: session.csrfToken };
      },
      contracts.me,
    )
    .post(
      "/api/gpu-stats",
      async ({ request }) => {
        const key = await store.keys.findActive(findCredential(request.headers) ?? "");
        if (key === undefined) throw new ApiError(401, "Invalid API key", { "www-authenticate": "Bearer" });
        const { readings, skipped } = parseGpuReadings(acceptedBody(await readJsonObject(request)));
        await store.gpu.add({ keyId: key.id, recordedAt: clock(), readings });
        gpuSamplesReceived(readings.length, skipped);
        return { ok: true as const };
      },
      contracts.ingestGpuSamples,
    );
}

function keyRoutes({ store, clock, log }: AdminContext, gate: SessionGate) {
  return new Elysia()
    .use(gate)
    .get(
      "/api/keys",
      ({ request: { method } }) => streamJson({ method, log }, ["[", maskedKeysJson(store.keys), "]"]),
      contracts.listKeys,
    )
    .post(
      "/api/keys",
      async ({ json, status }) => {
        const key = await store.keys.create({ ...parseNewKey(acceptedBody(json)), createdAt: clock() });
        if (key === "collision") throw new ApiError(409, "Key already exists");
        return status(201, fullKeyBody(key));
      },
      contracts.createKey,
    )
    .patch(
      "/api/keys/:id",
      async ({ json, params }) => {
        const change = parseKeyChange(acceptedBody(json));
        const key = await store.keys.update(parseKeyId(params.id), change);
        if (key === undefined) throw keyNotFound();
        return maskedKeyBody(key);
      },
      contracts.changeKey,
    )
    .delete(
      "/api/keys/:id",
      async ({ params }) => {
        if (!(await store.keys.delete(parseKeyId(params.id)))) throw keyNotFound();
        return { ok: true as const };
      },
      contracts.deleteKey,
    );
}

function usageRoutes({ store, clock, log }: AdminContext, gate: SessionGate) {
  return new Elysia()
    .use(gate)
    .get(
      "/api/usage/summary",
      async () => {
        const date = dayOf(clock());
        return { date, ...usageTotal(await store.usage.sumOfDay(date)) };
      },
      contracts.usageSummary,
    )
    .get("/api/usage/total", async () => usageTotal(await store.usage.sumOfKeys()), contracts.usageTotal)
    .get(
      "/api/usage/daily",
      ({ query, request: { method } }) =>
        streamJson({ method, log }, ["[", store.usage.daily(firstDay(clock(), query.days)), "]"]),
      contracts.dailyUsage,
    )
    .get(
      "/api/usage/history",
      ({ query, request: { method } }) =>
        streamJson({ method, log }, [historyHead(query), store.usage.history(bucketRange(clock(), query)), "]}"]),
      contracts.usageHistory,
    );
}

function gpuRoutes({ store, clock }: AdminContext, gate: SessionGate) {
  return new Elysia()
    .use(gate)
    .get("/api/gpu-stats", async () => (await store.gpu.latest()).map(gpuSampleBody), contracts.latestGpuSamples)
    .get(
      "/api/gpu-stats/power-history",
      async ({ query }) => {
        const points = await store.gpu.powerHistory(bucketRange(clock(), query));
        return { ...query, points: points.map(powerPointBody) };
      },
      contracts.powerHistory,
    );
}

function consoleRoutes(parts: AdminContext, gate: SessionGate, document: () => Record<string, unknown>) {
  return new Elysia()
    .use(gate)
    .post(
      "/api/logout",
      async ({ session, cookie: { session: cookie } }) => {
        await parts.sessions.end(session);
        cookie?.set(clearedCookie);
        return { ok: true as const };
      },
      contracts.logout,
    )
    .get("/api/overview", () => getOverview(parts), contracts.overview)
    .get("/api/openapi.json", document, contracts.openApi);
}
