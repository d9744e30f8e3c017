import { Elysia, t } from "elysia";
import type { Clock } from "../clock.ts";
import type { Log } from "../log.ts";
import type { Store } from "../store/store.ts";
import { ApiError } from "./errors.ts";
import * as schemas from "./schemas.ts";

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
  clientAddress(request: Request): string;
  metricsText(): Promise<string>;
  /** Requests under `/v1` that have not ended. */
  inFlight(): number;
  /** Whether the backend answers; may reject. Asked once every few seconds, and aborted by `signal`. */
  probeUpstream(signal: AbortSignal): Promise<{ ok: boolean }>;
}

const todo = (): never => {
  throw new ApiError(503, "Not built yet");
};
const { errorBody, okBody } = schemas;

/** Everything on the admin side but the console's files. */
// oxlint-disable-next-line typescript/explicit-module-boundary-types, typescript/explicit-function-return-type -- the inferred type is what the console's client is made from
export function adminRoutes(_deps: AdminDeps) {
  const api = new Elysia({ prefix: "/api" })
    .post("/login", todo, {
      body: schemas.loginRequest,
      response: {
        200: schemas.loginBody,
        400: errorBody,
        401: errorBody,
        413: errorBody,
        415: errorBody,
        429: errorBody,
      },
    })
    .get("/me", todo, { response: { 200: schemas.meBody, 401: schemas.anonymousBody } })
    .post("/gpu-stats", todo, {
      body: schemas.gpuSamplesRequest,
      response: { 200: okBody, 400: errorBody, 401: errorBody, 413: errorBody, 415: errorBody },
    })
    // From here on a session is needed, and its CSRF token for whatever changes something.
    .post("/logout", todo, { response: { 200: okBody, 401: errorBody, 403: errorBody } })
    .get("/keys", todo, { response: { 200: t.Array(schemas.keyBody), 401: errorBody } })
    .post("/keys", todo, {
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
    })
    .patch("/keys/:id", todo, {
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
    })
    .delete("/keys/:id", todo, { response: { 200: okBody, 401: errorBody, 403: errorBody, 404: errorBody } })
    .get("/usage/summary", todo, { response: { 200: schemas.usageSummary, 401: errorBody } })
    .get("/usage/total", todo, { response: { 200: schemas.usageTotal, 401: errorBody } })
    .get("/usage/daily", todo, {
      query: schemas.dailyQuery,
      response: { 200: schemas.dailyUsage, 400: errorBody, 401: errorBody },
    })
    .get("/usage/history", todo, {
      query: schemas.historyQuery,
      response: { 200: schemas.usageHistory, 400: errorBody, 401: errorBody },
    })
    .get("/gpu-stats", todo, { response: { 200: t.Array(schemas.gpuSample), 401: errorBody } })
    .get("/gpu-stats/power-history", todo, {
      query: schemas.historyQuery,
      response: { 200: schemas.powerHistory, 400: errorBody, 401: errorBody },
    })
    .get("/overview", todo, { response: { 200: schemas.overviewBody, 401: errorBody } })
    .get("/openapi.json", todo, { response: { 200: t.Record(t.String(), t.Unknown()), 401: errorBody } });

  return new Elysia()
    .get("/healthz", todo, { response: { 200: schemas.healthBody } })
    .get("/readyz", todo, { response: { 200: schemas.readinessBody, 503: schemas.readinessBody } })
    .get("/metrics", todo, { response: { 200: schemas.metricsText, 401: errorBody } })
    .use(api);
}
