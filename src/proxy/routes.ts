import { Elysia } from "elysia";
import type { MonotonicClock, WallClock } from "../time/clock.ts";
import type { Config } from "../config.ts";
import type { Log } from "../log/log.ts";
import { findWholeBody, isRewritable } from "./request/body.ts";
import { AbortReason, clientLeft } from "./upstream/abort-reason.ts";
import { applyCors, findPreflightResponse } from "./request/cors.ts";
import { type Delivery, respond, type RespondDeps } from "./response/respond.ts";
import { type ErrorCode, errorResponse, ProxyError } from "./errors.ts";
import { trackRequest, type RequestTracker } from "./request-tracker.ts";
import type { Forward, UpstreamRequest } from "./upstream/forward.ts";
import { type AuthenticateDeps, authenticate } from "./request/authenticate.ts";
import { upstreamRequestHeaders } from "./headers.ts";
import {
  findNonThinkingModel,
  isNonThinkingModelPath,
  type ServedModels,
  withNonThinkingModel,
} from "./response/model-list.ts";
import type { RequestObserver, Outcome } from "../domain.ts";
import { findPathAndQuery, isHost } from "./request/path.ts";
import type { StartReadTimeout } from "./upstream/read-timeout.ts";
import { rewriteRequest, type Rewritten } from "./rewrite/rewrite.ts";

export interface ProxyDeps extends RespondDeps, AuthenticateDeps {
  config: Pick<Config, "upstream" | "rewrite" | "corsOrigins">;
  forward: Forward;
  observer: RequestObserver;
  clientAddress: (request: Request) => string | undefined;
  /** Keeps the server's idle timer off a request that may be silent for long. @returns puts it back */
  disableIdleTimeout: (request: Request) => () => void;
  isStopping: () => boolean;
  startReadTimeout: StartReadTimeout;
  monotonic: MonotonicClock;
}

export interface Proxy {
  handle(request: Request): Promise<Response>;
  /** Answers what the path guard caught before anything else was looked at. */
  refuse(request: Request, code: ErrorCode): Response;
}

const methods = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);

export function proxyRoutes(proxy: Proxy) {
  // Nothing may touch `set` here: Elysia would take a streamed answer apart and decode it as text (1.4.30).
  return new Elysia().all("/v1/*", ({ request }) => proxy.handle(request), { parse: "none" });
}

export function createProxy(deps: ProxyDeps): Proxy {
  const { config } = deps;

  const begin = (request: Request): RequestTracker => {
    const path = withoutQuery(findPathAndQuery(request.url) ?? request.url);
    return trackRequest(deps.observer, deps.monotonic, request.method, path);
  };

  const fail = (tracker: RequestTracker, code: ErrorCode | undefined, outcome: Outcome): Response => {
    const response = code === undefined ? new Response(null, { status: 499 }) : errorResponse(code);
    tracker.status = response.status;
    tracker.finish(outcome, { code });
    return response;
  };

  /** The story of a request: path, key, body, upstream, answer. */
  const serve = async (request: Request, tracker: RequestTracker): Promise<Response> => {
    const target = getTarget(request);
    if (deps.isStopping()) throw new ProxyError("shutting_down");

    const key = await authenticate(request.headers, deps);
    tracker.keyId = key.id;

    const path = withoutQuery(target);
    // Before the body: the idle timer would cut one that takes longer, though it flows (bytes win no time in Bun 1.4.5).
    tracker.onFinished(deps.disableIdleTimeout(request));
    const { body, stream, usageAdded } = await readBody(request, path, deps);
    const asked = askedModels(request.method, target, config.rewrite, deps.clock);
    tracker.upstreamRequestSent();
    const answer = await deps.forward({
      method: request.method,
      pathAndQuery: asked.target,
      headers: upstreamRequestHeaders(request.headers, {
        keepLength: body === null || body instanceof ReadableStream,
        clientAddress: deps.clientAddress(request),
        upstreamApiKey: config.upstream.apiKey,
      }),
      body,
      readTimeoutMs: stream ? config.upstream.streamReadTimeoutMs : config.upstream.nonStreamReadTimeoutMs,
      client: request.signal,
    });
    tracker.upstreamResponded();
    return respond(
      { answer, tracker, keyId: key.id, method: request.method, path, usageAdded, edit: asked.edit },
      deps,
    );
  };

  const withCors = (request: Request, response: Response): Response => {
    applyCors(response.headers, request, config.corsOrigins);
    return response;
  };

  return {
    async handle(request) {
      const tracker = begin(request);
      const preflight = findPreflightResponse(request, config.corsOrigins);
      if (preflight !== undefined) {
        tracker.status = preflight.status;
        tracker.finish("completed");
        return preflight;
      }
      try {
        return withCors(request, await serve(request, tracker));
      } catch (error) {
        return withCors(request, fail(tracker, ...failureOf(error, request, deps.log)));
      }
    },
    refuse: (request, code) => withCors(request, fail(begin(request), code, "refused")),
  };
}

/** Path and query as they came. @throws Refusal for what is no request to an API */
function getTarget(request: Request): string {
  const target = findPathAndQuery(request.url);
  if (target === undefined || !isHost(request.headers.get("host"))) throw new ProxyError("invalid_host");
  if (!methods.has(request.method)) throw new ProxyError("method_not_allowed");
  if (wantsWebSocket(request)) throw new ProxyError("upgrade_not_supported");
  return target;
}

/** Browsers and SDKs upgrade to WebSocket alone; an offer of HTTP/2 (Java's client makes it each time) may be ignored. */
function wantsWebSocket(request: Request): boolean {
  return request.headers.get("upgrade")?.toLowerCase().includes("websocket") === true;
}

function withoutQuery(target: string): string {
  const query = target.indexOf("?");
  return query === -1 ? target : target.slice(0, query);
}

interface OutgoingBody extends Pick<Rewritten, "stream" | "usageAdded"> {
  body: UpstreamRequest["body"];
}

/** Only a body that may need a rewrite is held. @throws Refusal where such a one is too large */
async function readBody(
  request: Request,
  path: string,
  { config, startReadTimeout }: Pick<ProxyDeps, "config" | "startReadTimeout">,
): Promise<OutgoingBody> {
  const untouched = { stream: false, usageAdded: { includeUsage: false, continuousUsage: false } };
  if (!isRewritable(request)) return { ...untouched, body: request.body };
  const bytes = await inTime(findWholeBody(request), startReadTimeout);
  if (bytes === undefined) throw new ProxyError("body_too_large");
  const rewritten = await rewriteRequest(path, bytes, config.rewrite);
  if ("refused" in rewritten) throw new ProxyError("invalid_json");
  return { ...rewritten, body: rewritten.body ?? bytes };
}

/** For 128 MiB over a slow line; a client that stops in the middle shall not keep its connection for ever. */
const heldBodyMs = 60 * 60_000;

/** @throws Refusal where the body does not come in time */
function inTime<T>(body: Promise<T>, startReadTimeout: StartReadTimeout): Promise<T> {
  return new Promise((resolve, reject) => {
    const readTimeout = startReadTimeout(heldBodyMs, () => reject(new ProxyError("request_timeout")));
    readTimeout.beginWait();
    body.then(resolve, reject).finally(readTimeout.clear);
  });
}

function failureOf(error: unknown, request: Request, log: Log): [ErrorCode | undefined, Outcome] {
  // A body that stops in the middle fails with the runtime's error, not with ours.
  const ended = error instanceof AbortReason || !request.signal.aborted ? error : clientLeft();
  if (ended instanceof AbortReason) return [ended.code, ended.outcome];
  if (ended instanceof ProxyError) return [ended.code, "refused"];
  log.error("A request failed inside Tollgate", { error: error instanceof Error ? error.stack : String(error) });
  return ["internal", "refused"];
}

interface AskedModels {
  /** Path and query that the backend is asked for. */
  target: string;
  edit: Delivery["edit"];
}

/** The list of models gets an entry that no backend knows, and asking for that entry asks the backend for its list. */
function askedModels(method: string, target: string, models: ServedModels, clock: WallClock): AskedModels {
  const path = withoutQuery(target);
  const createdSeconds = Math.floor(clock() / 1000);
  if (method !== "GET") return { target, edit: undefined };
  if (path === "/v1/models") return { target, edit: (list) => withNonThinkingModel(list, models, createdSeconds) };
  if (!isNonThinkingModelPath(path, models)) return { target, edit: undefined };
  return { target: "/v1/models", edit: (list) => findNonThinkingModel(list, models, createdSeconds) };
}
