import { type AnyElysia, Elysia } from "elysia";
import { type ErrorCode, errorResponse, failureResponse, isMessagesPath, ProxyError } from "./errors.ts";
import { addDebugHeaders, setLimitHeaders } from "./headers.ts";
import { applyCors, findPreflightResponse } from "./request/cors.ts";
import { isHalfSent } from "./request/half-sent.ts";
import { readLimitsLeft } from "./request/admit.ts";
import {
  findPathAndQuery,
  type GuardedRoutes,
  guardPaths,
  type Handler,
  loggedPath,
  readTarget,
} from "./request/path.ts";
import { classOfHeaders } from "./request/request-class.ts";
import { trackRequest } from "./request-tracker.ts";
import { createStoredIds } from "./stored.ts";
import { commentsUntil, createStreamWait } from "./response/while-waiting.ts";
import { createHabits } from "./usage/usage-habits.ts";
import { complete, type Incoming, type ProxyDeps, type RequestDeps, runRequest } from "./life-of-request.ts";
import { classifyFailure } from "./upstream/abort-reason.ts";

export interface Proxy {
  handle(request: Request): Promise<Response>;
  /** Responds with an error to a request that gets no further than the listener. */
  refuse(request: Request, code: ErrorCode): Response;
}

export const elysiaOptions = {
  // By default Elysia (1.4.30) looks for the path from a fixed offset of the URL, so that a short Host header shifts it.
  // Remove when the default handles every Host header.
  handler: { standardHostname: false },
  // `/v1` is not found; `/v1/` is forwarded.
  strictPath: true,
} as const;

/** `/v1` as routes. Nothing is set on the context, or Elysia (1.4.30) would decode a stream as text and encode it anew. */
export function gatewayRoutes({ handle }: Pick<Proxy, "handle">): AnyElysia {
  const untouched = { parse: "none", detail: { hide: true } } as const;
  return new Elysia(elysiaOptions)
    .onError(() => errorResponse("internal"))
    .all("/v1/*", ({ request }) => handle(request), untouched)
    .all("//v1/*", ({ request }) => handle(request), untouched);
}

/**
 * What the listener serves: what is below `/v1/` passes the path guard to the app that has `gatewayRoutes`, unless an invalid
 * Host made the URL relative (Bun 1.4.5), which Elysia would read as another path.
 * @param others serves all other paths
 */
export function guardedRoutes(app: Fetcher, { handle, refuse }: Proxy, others: Handler): GuardedRoutes {
  return guardPaths({
    handle: (request) => (request.url.startsWith("http") ? app.fetch(request) : handle(request)),
    others,
    refuse: (request) => refuse(request, "invalid_path"),
  });
}

export interface Fetcher {
  fetch: Handler;
}

/** `runRequest` with what surrounds every request: tracking, CORS, error responses and the headers that all responses carry. */
export function createProxy(deps: ProxyDeps): Proxy {
  const { log } = deps;
  const { corsOrigins } = deps.config;
  const requestDeps: RequestDeps = {
    ...deps,
    habitsOf: createHabits(deps.monotonic),
    storedIds: createStoredIds(deps),
  };

  function fail(incoming: Incoming, error: unknown): Response {
    const { request, tracker } = incoming;
    const { code, outcome, cause, details } = classifyFailure(error, request.signal);
    if (code === "internal") log.error("Request failed inside Tollgate", { error: stackOf(error) });
    const isMessages = isMessagesPath(findPathAndQuery(request.url) ?? "");
    const response = failureResponse(code, details, isMessages ? tracker.requestId : undefined);
    tracker.status = response.status;
    tracker.finish(outcome, { code, cause });
    return withOurHeaders(incoming, response);
  }

  /** @param isFinal it is known where the request went, and what became of it */
  function withOurHeaders({ request, tracker, limitHeaders }: Incoming, response: Response, isFinal = true): Response {
    const { headers } = response;
    if (isFinal && request.headers.get("x-tollgate-debug") === "1") addDebugHeaders(headers, tracker);
    // Anthropic's SDKs read the second.
    for (const name of ["x-request-id", "request-id"]) headers.set(name, tracker.requestId);
    if (limitHeaders !== undefined) setLimitHeaders(headers, limitHeaders);
    if (corsOrigins !== undefined) applyCors(headers, request, corsOrigins);
    return response;
  }

  async function respondTo(incoming: Incoming): Promise<Response> {
    try {
      return withOurHeaders(incoming, await runRequest(incoming, requestDeps));
    } catch (error) {
      const { request, tracker, unreportedLimits } = incoming;
      if (unreportedLimits !== null && tracker.keyId !== undefined && !request.signal.aborted) {
        incoming.limitHeaders = await readLimitsLeft(tracker.keyId, unreportedLimits, deps);
      }
      const isCutShort = !tracker.isReceived && (await isHalfSent(request));
      const response = fail(incoming, error);
      // Now that the idle timeout is restored.
      if (isCutShort) deps.closeSoon(request);
      return response;
    }
  }

  /** While a stream waits in the queue or for the backend, its client gets comments. */
  async function respondOrKeepAlive(incoming: Incoming): Promise<Response> {
    const waits = Promise.withResolvers<undefined>();
    const wait = createStreamWait(deps.sseKeepaliveMs, () => {
      incoming.tracker.headSent();
      waits.resolve(undefined);
    });
    incoming.wait = wait;
    const response = respondTo(incoming).finally(wait.end);
    const inTime = await Promise.race([response, waits.promise]);
    if (inTime !== undefined) return inTime;
    const { path } = readTarget(incoming.request);
    const stream = commentsUntil(response, {
      path,
      keepaliveMs: deps.sseKeepaliveMs,
      rank: () => incoming.rank?.(),
    });
    return withOurHeaders(incoming, stream, false);
  }

  return {
    async handle(request) {
      const incoming = track(deps, request);
      const preflight = corsOrigins && findPreflightResponse(request, corsOrigins);
      if (preflight !== undefined) return complete(incoming.tracker, preflight);
      return deps.sseKeepaliveMs > 0 ? respondOrKeepAlive(incoming) : respondTo(incoming);
    },
    refuse: (request, code) => fail(track(deps, request), new ProxyError(code)),
  };
}

function track(deps: ProxyDeps, request: Request): Incoming {
  const peerAddress = deps.peerAddress(request);
  const clientProgram = clientProgramOf(request.headers);
  const tracker = trackRequest(deps, {
    id: requestIdOf(request.headers),
    method: request.method,
    path: loggedPath(request),
    clientAddress: deps.clientAddress(request, peerAddress),
    clientProgram,
    requestClass: classOfHeaders(request.headers, clientProgram),
  });
  const unadmitted = { early: undefined, unreportedLimits: null, limitHeaders: undefined };
  return { request, tracker, peerAddress, ...unadmitted, wait: undefined, rank: undefined };
}

const stackOf = (error: unknown): string | undefined => (error instanceof Error ? error.stack : String(error));

/** The first word of `User-Agent`, such as `OpenAI/Python`. */
function clientProgramOf(headers: Headers): string | undefined {
  const agent = headers.get("user-agent");
  if (agent === null || agent === "") return undefined;
  const end = agent.indexOf(" ");
  return end === -1 ? agent : agent.slice(0, end);
}

/**
 * The client's `X-Request-Id`, if it is at most 128 visible ASCII characters, or a new one. New ones sort by time: an
 * index of them grows at its end only.
 */
function requestIdOf(headers: Headers): string {
  const given = headers.get("x-request-id");
  return given !== null && /^[\x21-\x7e]{1,128}$/.test(given) ? given : Bun.randomUUIDv7();
}
