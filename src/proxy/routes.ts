import { Elysia } from "elysia";
import type { Config } from "../config.ts";
import type { RequestObserver } from "../domain.ts";
import type { Log } from "../log/log.ts";
import type { MonotonicClock, WallClock } from "../time/clock.ts";
import { type ErrorCode, failureResponse, ProxyError } from "./errors.ts";
import { upstreamRequestHeaders } from "./headers.ts";
import { authenticate, type FindKey } from "./request/authenticate.ts";
import { type ReadBody, readBody } from "./request/body.ts";
import { applyCors, findPreflightResponse } from "./request/cors.ts";
import { guardPaths } from "./request/path.ts";
import { loggedPath, readTarget } from "./request/target.ts";
import { type RequestTracker, trackRequest } from "./request-tracker.ts";
import { resolveModelList } from "./response/model-list.ts";
import { type RecordUsage, respond } from "./response/respond.ts";
import { rewriteRequest, type Rewritten } from "./rewrite/rewrite.ts";
import { noUsageAdded } from "./rewrite/stream-options.ts";
import { classifyFailure } from "./upstream/abort-reason.ts";
import type { Forward, UpstreamRequest } from "./upstream/forward.ts";
import type { StartReadTimeout } from "./upstream/read-timeout.ts";

export interface ProxyDeps {
  config: Pick<Config, "upstream" | "rewrite" | "corsOrigins">;
  findKey: FindKey;
  forward: Forward;
  record: RecordUsage;
  observer: RequestObserver;
  clientAddress: (request: Request) => string | undefined;
  /** Takes a request that may be silent for minutes out of the server's idle timer. @returns undoes it */
  disableIdleTimeout: (request: Request) => () => void;
  isStopping: () => boolean;
  startReadTimeout: StartReadTimeout;
  wall: WallClock;
  monotonic: MonotonicClock;
  /** 0: never. */
  sseKeepaliveMs: number;
  log: Log;
}

export interface Proxy {
  handle(request: Request): Promise<Response>;
  /** Responds with an error to a request that gets no further than the listener. */
  refuse(request: Request, code: ErrorCode): Response;
}

/** What the listener serves: the path guard, then everything else through `fetch`. */
export function guardedRoutes(proxy: Proxy, fetch: (request: Request) => Response | Promise<Response>) {
  return guardPaths(fetch, (request) => proxy.refuse(request, "invalid_path"));
}

/** Nothing here may touch `set`: Elysia 1.4.30 would then decode a streamed response as text. Remove when it does not. */
export function proxyRoutes(proxy: Proxy) {
  return new Elysia().all("/v1/*", ({ request }) => proxy.handle(request), { parse: "none" });
}

export function createProxy(deps: ProxyDeps): Proxy {
  const { config, findKey, forward, log, monotonic, observer, startReadTimeout, wall } = deps;

  /** The life of a request, after the path guard. Each step refuses with a ProxyError or ends with an AbortReason. */
  async function serve(request: Request, tracker: RequestTracker): Promise<Response> {
    const { path, pathAndQuery } = readTarget(request);
    if (deps.isStopping()) throw new ProxyError("shutting_down");

    const key = await authenticate(request.headers, { findKey, log });
    tracker.keyId = key.id;
    // Before the body: the idle timer also cuts a body that flows for too long (Bun 1.4.5).
    tracker.onFinished(deps.disableIdleTimeout(request));

    const { body, stream, usageAdded } = rewrite(path, await readBody(request, startReadTimeout));
    const modelList = resolveModelList(request.method, pathAndQuery, config.rewrite, wall);

    tracker.upstreamRequestSent();
    const upstream = await forward({
      method: request.method,
      pathAndQuery: modelList?.pathAndQuery ?? pathAndQuery,
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
      { upstream, tracker, keyId: key.id, method: request.method, path, usageAdded, edit: modelList?.edit },
      { record: deps.record, wall, sseKeepaliveMs: deps.sseKeepaliveMs },
    );
  }

  function rewrite(path: string, { body, text }: ReadBody): OutgoingBody {
    if (text === undefined) return { body, stream: false, usageAdded: noUsageAdded };
    const rewritten = rewriteRequest(path, text, config.rewrite);
    return { ...rewritten, body: rewritten.body ?? body };
  }

  const track = (request: Request): RequestTracker =>
    trackRequest(observer, monotonic, request.method, loggedPath(request.url));

  function fail(request: Request, tracker: RequestTracker, error: unknown): Response {
    const { code, outcome } = classifyFailure(error, request.signal);
    if (code === "internal") log.error("Request failed inside Tollgate", { error: stackOf(error) });
    const response = failureResponse(code);
    tracker.status = response.status;
    tracker.finish(outcome, { code });
    return withCors(request, response);
  }

  function withCors(request: Request, response: Response): Response {
    applyCors(response.headers, request, config.corsOrigins);
    return response;
  }

  return {
    async handle(request) {
      const tracker = track(request);
      const preflight = findPreflightResponse(request, config.corsOrigins);
      if (preflight !== undefined) {
        tracker.status = preflight.status;
        tracker.finish("completed");
        return preflight;
      }
      try {
        return withCors(request, await serve(request, tracker));
      } catch (error) {
        return fail(request, tracker, error);
      }
    },
    refuse: (request, code) => fail(request, track(request), new ProxyError(code)),
  };
}

interface OutgoingBody extends Pick<Rewritten, "stream" | "usageAdded"> {
  body: UpstreamRequest["body"];
}

const stackOf = (error: unknown): string | undefined => (error instanceof Error ? error.stack : String(error));
