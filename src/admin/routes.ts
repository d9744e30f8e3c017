import { Type as t } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Clock } from "../clock.ts";
import type { Log } from "../log.ts";
import type { Store } from "../store/store.ts";
import { presentedKey } from "../credential.ts";
import { acceptedBody, readJsonObject } from "./body.ts";
import { readUnforgedBody } from "./csrf.ts";
import { ApiError, authenticationRequired, refusalOf } from "./errors.ts";
import { gpuSampleBody, parseGpuReadings } from "./gpu.ts";
import { streamJson } from "./json-stream.ts";
import { fullKeyBody, keyNotFound, maskedKeyBody, parseKeyChange, parseKeyId, parseNewKey } from "./keys.ts";
import { createLogin } from "./login.ts";
import { openApiDocument } from "./openapi.ts";
import { createOperations, presentsMetricsToken } from "./operations.ts";
import { refuseOtherRequests } from "./other-requests.ts";
import { getOverview } from "./overview.ts";
import * as schemas from "./schemas.ts";
import { clearedCookie, createSessions, sessionCookie } from "./session.ts";
import { bucketRange, firstDay, historyHead, powerPointBody, usageTotal } from "./usage.ts";
import { dayOf } from "../seoul.ts";

export interface AdminDeps {
  store: Store;
  config: {
    username: string;
    /** Lets a Prometheus server read `/metrics`; undefined: only a session does. */
    metricsToken: string | undefined;
  };
  /** Signs session cookies. */
  signingKey: string;
  clock: Clock;
  log: Log;
  /** The client as the outermost trusted proxy saw it. */
  clientAddress: (request: Request) => string;
  metricsText: () => Promise<string>;
  /** Requests under `/v1` that have not ended. */
  inFlight: () => number;
  /** Whether the backend answers; may reject. Asked once every few seconds, and aborted by `signal`. */
  probeUpstream: (signal: AbortSignal) => Promise<{ ok: boolean }>;
}

const { errorBody, okBody } = schemas;

/** Everything on the admin side but the console's files. */
// oxlint-disable-next-line typescript/explicit-module-boundary-types, typescript/explicit-function-return-type -- the inferred type is what the console's client is made from
export function adminRoutes(deps: AdminDeps) {
  const { store, config, clock, log } = deps;
  const sessions = createSessions(deps);
  const login = createLogin({ ...deps, sessions });
  const operations = createOperations(deps);

  const api = new Elysia({ prefix: "/api" })
    .post(
      "/login",
      async ({ request, cookie }) => {
        const body = acceptedBody(await readJsonObject(request));
        const session = await login(body, deps.clientAddress(request));
        cookie["session"]?.set(sessionCookie(session));
        return { ok: true as const, username: session.username, csrf_token: session.csrfToken };
      },
      {
        parse: byHandler,
        body: schemas.loginRequest,
        response: {
          200: schemas.loginBody,
          400: errorBody,
          401: errorBody,
          413: errorBody,
          415: errorBody,
          429: errorBody,
        },
      },
    )
    .get(
      "/me",
      async ({ cookie, status }) => {
        const session = await sessions.find(cookie["session"]?.value);
        if (session === undefined) return status(401, { authenticated: false as const });
        cookie["session"]?.set(sessionCookie(session));
        return { authenticated: true as const, username: session.username, csrf_token: session.csrfToken };
      },
      { response: { 200: schemas.meBody, 401: schemas.anonymousBody } },
    )
    .post(
      "/gpu-stats",
      async ({ request }) => {
        const key = await store.keys.findActive(presentedKey(request.headers) ?? "");
        if (key === undefined) throw new ApiError(401, "Invalid API key", { "www-authenticate": "Bearer" });
        const readings = parseGpuReadings(acceptedBody(await readJsonObject(request)));
        await store.gpu.add({ keyId: key.id, recordedAt: clock(), readings });
        return { ok: true as const };
      },
      {
        parse: byHandler,
        body: schemas.gpuSamplesRequest,
        response: { 200: okBody, 400: errorBody, 401: errorBody, 413: errorBody, 415: errorBody },
      },
    )

    // From here on a session is needed, and its CSRF token for whatever changes something: in this order, and before
    // anything else of the request is judged.
    .derive(async ({ request, cookie }) => {
      const session = await sessions.find(cookie["session"]?.value);
      if (session === undefined) throw authenticationRequired();
      cookie["session"]?.set(sessionCookie(session));
      return { session, json: await readUnforgedBody(request, session.csrfToken) };
    })
    .onTransform(({ query }) => refuseLooseIntegers(query))
    .post(
      "/logout",
      async ({ session, cookie }) => {
        await sessions.end(session);
        cookie["session"]?.set(clearedCookie);
        return { ok: true as const };
      },
      { response: { 200: okBody, 401: errorBody, 403: errorBody } },
    )
    .get("/keys", async () => (await store.keys.list()).map(maskedKeyBody), {
      response: { 200: t.Array(schemas.keyBody), 401: errorBody },
    })
    .post(
      "/keys",
      async ({ json, status }) => {
        const key = await store.keys.create({ ...parseNewKey(acceptedBody(json)), createdAt: clock() });
        if (key === "collision") throw new ApiError(409, "Key already exists");
        return status(201, fullKeyBody(key));
      },
      {
        parse: byHandler,
        body: schemas.newKeyRequest,
        response: {
          201: schemas.keyBody,
          400: errorBody,
          401: errorBody,
          403: errorBody,
          409: errorBody,
          413: errorBody,
          415: errorBody,
        },
      },
    )
    .patch(
      "/keys/:id",
      async ({ json, params }) => {
        const change = parseKeyChange(acceptedBody(json));
        const key = await store.keys.update(parseKeyId(params.id), change);
        if (key === undefined) throw keyNotFound();
        return maskedKeyBody(key);
      },
      {
        parse: byHandler,
        body: schemas.keyChangeRequest,
        response: {
          200: schemas.keyBody,
          400: errorBody,
          401: errorBody,
          403: errorBody,
          404: errorBody,
          413: errorBody,
          415: errorBody,
        },
      },
    )
    .delete(
      "/keys/:id",
      async ({ params }) => {
        if (!(await store.keys.delete(parseKeyId(params.id)))) throw keyNotFound();
        return { ok: true as const };
      },
      { response: { 200: okBody, 401: errorBody, 403: errorBody, 404: errorBody } },
    )
    .get(
      "/usage/summary",
      async () => {
        const date = dayOf(clock());
        return { date, ...usageTotal(await store.usage.sumOfDay(date)) };
      },
      { response: { 200: schemas.usageSummary, 401: errorBody } },
    )
    .get("/usage/total", async () => usageTotal(await store.usage.sumOfKeys()), {
      response: { 200: schemas.usageTotal, 401: errorBody },
    })
    .get(
      "/usage/daily",
      ({ query, request }) => streamJson(request.method, ["[", store.usage.daily(firstDay(clock(), query.days)), "]"]),
      { query: schemas.dailyQuery, response: { 200: schemas.dailyUsage, 400: errorBody, 401: errorBody } },
    )
    .get(
      "/usage/history",
      ({ query, request }) =>
        streamJson(request.method, [historyHead(query), store.usage.history(bucketRange(clock(), query)), "]}"]),
      { query: schemas.historyQuery, response: { 200: schemas.usageHistory, 400: errorBody, 401: errorBody } },
    )
    .get("/gpu-stats", async () => (await store.gpu.latest()).map(gpuSampleBody), {
      response: { 200: t.Array(schemas.gpuSample), 401: errorBody },
    })
    .get(
      "/gpu-stats/power-history",
      async ({ query }) => {
        const points = await store.gpu.powerHistory(bucketRange(clock(), query));
        return { ...query, points: points.map(powerPointBody) };
      },
      { query: schemas.historyQuery, response: { 200: schemas.powerHistory, 400: errorBody, 401: errorBody } },
    )
    .get("/overview", () => getOverview({ ...deps, operations }), {
      response: { 200: schemas.overviewBody, 401: errorBody },
    })
    .get("/openapi.json", (): Record<string, unknown> => openApiDocument(api), {
      response: { 200: t.Record(t.String(), t.Unknown()), 401: errorBody },
    });

  const app = new Elysia()
    .onError(({ error, set, path, status }) => {
      const { status: code, body, headers } = refusalOf(error, log, path);
      Object.assign(set.headers, headers);
      return status(code as 500, body);
    })
    .onTransform(({ set }) => {
      set.headers["cache-control"] = "no-store";
      set.headers["x-content-type-options"] = "nosniff";
    })
    .get("/healthz", () => ({ status: "ok" as const }), { response: { 200: schemas.healthBody } })
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
      { response: { 200: schemas.readinessBody, 503: schemas.readinessBody } },
    )
    .get(
      "/metrics",
      async ({ request, cookie }) => {
        const scraper = presentsMetricsToken(request.headers, config.metricsToken);
        if (!scraper && (await sessions.find(cookie["session"]?.value)) === undefined) throw authenticationRequired();
        return new Response(await deps.metricsText(), { headers: { "content-type": prometheusText } });
      },
      { response: { 200: schemas.metricsText, 401: errorBody } },
    )
    .use(api);
  return app.use(refuseOtherRequests(app.routes));
}

/** The handler reads the body when its turn has come; "json" is never reached and names the content type in the document. */
const byHandler = [() => null, "json" as const];

const prometheusText = "text/plain; version=0.0.4; charset=utf-8";

/** Elysia reads `0x7`, `1e1` and `7.0` as numbers too; a value that is not of digits alone is made one that it refuses. */
function refuseLooseIntegers(query: Record<string, unknown>): void {
  for (const name of ["days", "bucket_minutes"]) {
    if (Object.hasOwn(query, name) && !/^\d+$/.test(String(query[name]))) query[name] = "";
  }
}
