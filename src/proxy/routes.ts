import { Elysia } from "elysia";
import type { Config } from "../config.ts";
import type { RequestObserver } from "../domain.ts";
import type { Log } from "../log/log.ts";
import type { MonotonicClock, WallClock } from "../time/clock.ts";
import { type ErrorCode, failureResponse, ProxyError } from "./errors.ts";
import { upstreamRequestHeaders } from "./headers.ts";
import { authenticate, type FindKey } from "./request/authenticate.ts";
import { type ReadBody, readBody } from "./request/body.ts";
import type { HeldBytes } from "./request/held-bytes.ts";
import { applyCors, findPreflightResponse } from "./request/cors.ts";
import { guardPaths } from "./request/path.ts";
import { requestIdOf } from "./request/request-id.ts";
import { loggedPath, readTarget } from "./request/target.ts";
import { getEndpoint } from "./rewrite/endpoint.ts";
import { type RequestTracker, trackRequest } from "./request-tracker.ts";
import { resolveModelList } from "./response/model-list.ts";
import type { RecordUsage } from "./response/count.ts";
import { respond } from "./response/respond.ts";
import { rewriteRequest, type Rewritten, type RewriteRules } from "./rewrite/rewrite.ts";
import { noUsageAdded } from "./rewrite/stream-options.ts";
import { classifyFailure, endedByAdmin } from "./upstream/abort-reason.ts";
import { outgoingBodyOf } from "./upstream/outgoing-body.ts";
import type { Forward, UpstreamRequest } from "./upstream/forward.ts";
import type { StartReadTimeout } from "./upstream/read-timeout.ts";

export interface ProxyDeps {
  config: Pick<Config, "upstream" | "rewrite" | "corsOrigins" | "maxBodyBytes">;
  findKey: FindKey;
  /** The upstream's host and port, as the request log names it. */
  backend?: string;
  forward: Forward;
  record: RecordUsage;
  observer: RequestObserver;
  /** The address at the other end of the connection. */
  peerAddress: (request: Request) => string | undefined;
  /** The client as the outermost trusted reverse proxy saw it. */
  clientAddress: (request: Request, peerAddress: string | undefined) => string;
  /** Takes a request that may be silent for minutes out of the server's idle timer. @returns undoes it */
  disableIdleTimeout: (request: Request) => () => void;
  isStopping: () => boolean;
  startReadTimeout: StartReadTimeout;
  heldBytes: HeldBytes;
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
  return new Elysia().all("/*", ({ request }) => proxy.handle(request), { parse: "none" });
}

/** One request on its way, as the steps need it. */
interface Incoming {
  request: Request;
  tracker: RequestTracker;
  /** The address at the other end of the connection. */
  peerAddress: string | undefined;
}

/** The life of a request, after the path guard. Each step refuses with a ProxyError or ends with an AbortReason. */
async function serve({ request, tracker, peerAddress }: Incoming, deps: ProxyDeps): Promise<Response> {
  const { config, wall } = deps;
  const { path, pathAndQuery } = readTarget(request);
  if (deps.isStopping()) throw new ProxyError("shutting_down");

  const key = await authenticate(request.headers, { findKey: deps.findKey, log: deps.log });
  tracker.keyId = key.id;
  // Before the body: the idle timer also cuts a body that flows (Bun 1.4.5). Remove when received bytes restart it.
  tracker.onFinished(deps.disableIdleTimeout(request));

  using held = deps.heldBytes.open(key.id);
  const { startReadTimeout } = deps;
  const received = await readBody(request, getEndpoint(path).takesJson, {
    startReadTimeout,
    held,
    maxBytes: config.maxBodyBytes,
  });
  const { body, length, stream, usageAdded, model, changes } = await rewriteBody(path, received, config.rewrite);
  tracker.model = model;
  tracker.changes = changes;
  const modelList = resolveModelList(request.method, pathAndQuery, config.rewrite, wall);

  tracker.upstreamRequestSent(deps.backend);
  const upstream = await deps.forward({
    method: request.method,
    pathAndQuery: modelList?.pathAndQuery ?? pathAndQuery,
    headers: upstreamRequestHeaders(request.headers, {
      contentLength: length,
      peerAddress,
      upstreamApiKey: config.upstream.apiKey,
      requestId: tracker.requestId,
    }),
    body,
    readTimeoutMs: stream ? config.upstream.streamReadTimeoutMs : config.upstream.nonStreamReadTimeoutMs,
    client: request.signal,
    onReceived: tracker.bodyReceived,
    onStarted: (abort) => tracker.onEndRequested(() => abort(endedByAdmin())),
  });
  tracker.upstreamResponded();
  held.release();

  return respond(
    { upstream, tracker, keyId: key.id, method: request.method, path, usageAdded, edit: modelList?.edit },
    { record: deps.record, wall, sseKeepaliveMs: deps.sseKeepaliveMs },
  );
}

interface RewrittenBody extends Pick<Rewritten, "stream" | "usageAdded" | "model" | "changes"> {
  body: UpstreamRequest["body"];
  /** Undefined for a body that is not held: its length is the client's. */
  length: number | undefined;
}

async function rewriteBody(path: string, body: ReadBody, rules: RewriteRules): Promise<RewrittenBody> {
  if (!(body instanceof Uint8Array)) {
    return { body, length: undefined, stream: false, usageAdded: noUsageAdded, model: undefined };
  }
  const rewritten = await rewriteRequest(path, body, rules);
  if ("refused" in rewritten) throw new ProxyError("invalid_json");
  const { pieces = [body], ...rest } = rewritten;
  return { ...outgoingBodyOf(pieces), ...rest };
}

/** `serve` with what surrounds every request: tracking, CORS, error responses and the headers that all responses carry. */
export function createProxy(deps: ProxyDeps): Proxy {
  const { config, log } = deps;

  function track(request: Request): Incoming {
    const peerAddress = deps.peerAddress(request);
    const tracker = trackRequest(deps.observer, deps.monotonic, {
      id: requestIdOf(request.headers),
      method: request.method,
      path: loggedPath(request),
      clientAddress: deps.clientAddress(request, peerAddress),
      clientProgram: clientProgramOf(request.headers),
    });
    return { request, tracker, peerAddress };
  }

  function fail({ request, tracker }: Incoming, error: unknown): Response {
    const { code, outcome, cause } = classifyFailure(error, request.signal);
    if (code === "internal") log.error("Request failed inside Tollgate", { error: stackOf(error) });
    const response = failureResponse(code);
    tracker.status = response.status;
    tracker.finish(outcome, { code, cause });
    return withOurHeaders({ request, tracker }, response);
  }

  function withOurHeaders({ request, tracker }: Pick<Incoming, "request" | "tracker">, response: Response): Response {
    response.headers.set("x-request-id", tracker.requestId);
    applyCors(response.headers, request, config.corsOrigins);
    return response;
  }

  return {
    async handle(request) {
      const incoming = track(request);
      const preflight = findPreflightResponse(request, config.corsOrigins);
      if (preflight !== undefined) {
        incoming.tracker.status = preflight.status;
        incoming.tracker.finish("completed");
        return preflight;
      }
      try {
        return withOurHeaders(incoming, await serve(incoming, deps));
      } catch (error) {
        return fail(incoming, error);
      }
    },
    refuse: (request, code) => fail(track(request), new ProxyError(code)),
  };
}

/** The first word of `User-Agent`, such as `OpenAI/Python`. */
function clientProgramOf(headers: Headers): string | undefined {
  const agent = headers.get("user-agent");
  if (agent === null || agent === "") return undefined;
  const end = agent.indexOf(" ");
  return end === -1 ? agent : agent.slice(0, end);
}

const stackOf = (error: unknown): string | undefined => (error instanceof Error ? error.stack : String(error));
