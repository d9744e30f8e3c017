import { type ErrorCode, errorResponse } from "../proxy/errors.ts";
import { guardedPatterns, hasDotDot } from "../proxy/request/path.ts";

type Handler = (request: Request) => Response | Promise<Response>;

export interface ListenOptions {
  host: string;
  port: number;
  /** Several processes may share the port. */
  shared: boolean;
  connections: Connections;
  fetch: Handler;
  /** Answers a path under `/v1/` that may not pass; undefined on a listener without the proxy. */
  refuse: ((request: Request, code: ErrorCode) => Response) | undefined;
}

export interface Listener {
  url: string;
  /** Refuses new connections, and resolves once the running responses have ended. */
  drain(): Promise<void>;
  /** Cuts what still runs. */
  cut(): Promise<void>;
}

/** What the application asks of the connection below a request; made before the listener that it then belongs to. */
export interface Connections {
  /** The address at the other end. */
  peerAddress(request: Request): string | undefined;
  /** How long a connection may be silent, or take over a request head: bytes that trickle in win no time (Bun 1.4.5). */
  idleSeconds: number;
  /** Takes a request out of the idle timer. @returns puts its connection back */
  disableIdleTimeout(request: Request): () => void;
  attach(server: Bun.Server<undefined>): void;
}

export function createConnections(idleSeconds = defaultIdleSeconds): Connections {
  let server: Bun.Server<undefined> | undefined;
  return {
    idleSeconds,
    peerAddress: (request) => server?.requestIP(request)?.address,
    disableIdleTimeout(request) {
      server?.timeout(request, 0);
      // The setting outlives the response: without this a kept-alive connection would never be closed again.
      // Remove when `server.timeout` applies to one request (Bun 1.4.5).
      return () => server?.timeout(request, idleSeconds);
    },
    attach(attached) {
      server = attached;
    },
  };
}

/** A port that is taken, or an address that is not ours. */
export class ListenError extends Error {
  override name = "ListenError";
}

/** Closes connections that are silent between requests or in the middle of a request head. */
const defaultIdleSeconds = 75;

/** @throws ListenError */
export function listen(options: ListenOptions): Listener {
  const server = serve(options);
  options.connections.attach(server);
  return { url: server.url.origin, drain: () => server.stop(), cut: () => server.stop(true) };
}

function serve({ host, port, shared, connections, fetch, refuse }: ListenOptions): Bun.Server<undefined> {
  try {
    return Bun.serve({
      hostname: host,
      port,
      reusePort: shared,
      idleTimeout: connections.idleSeconds,
      // Bodies that are not rewritten have no limit; those that are have one of their own.
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
      // Bun's error page would tell strangers about the program.
      development: false,
      error: () => errorResponse("internal"),
      routes: refuse === undefined ? {} : guardedRoutes(fetch, refuse),
      fetch: (request) =>
        refuse !== undefined && isBelowV1(request) ? refuse(request, "invalid_path") : fetch(request),
    });
  } catch (error) {
    throw listenError(error, host, port);
  }
}

/** The path guard: it sees the segments as they came, before anything else looks at the request. */
function guardedRoutes(
  fetch: Handler,
  refuse: (request: Request, code: ErrorCode) => Response,
): Record<string, (request: Bun.BunRequest) => Response | Promise<Response>> {
  const guard = (request: Bun.BunRequest): Response | Promise<Response> => {
    const params: Record<string, string> = request.params;
    for (const name in params) if (hasDotDot(params[name] ?? "")) return refuse(request, "invalid_path");
    return fetch(request);
  };
  const routes = Object.fromEntries(guardedPatterns().map((pattern) => [pattern, guard]));
  // What no pattern matches cannot be looked through.
  return { ...routes, "/v1/*": (request) => refuse(request, "invalid_path") };
}

/**
 * Bun has already taken the dot segments out of a URL: one that ends up below `/v1/` past the guard began elsewhere.
 * Remove when Bun gives the raw target of a request (1.4.5).
 */
function isBelowV1(request: Request): boolean {
  return /^(?:https?:\/\/[^/]*)?\/v1\//.test(request.url);
}

/** One line for the operator. */
export function listenError(error: unknown, host: string, port: number): ListenError {
  return new ListenError(listenProblem(error, host, port));
}

function listenProblem(error: unknown, host: string, port: number): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code === "EADDRINUSE") return `port ${port} on ${host} is in use by another program`;
  if (code === "EACCES") return `port ${port} on ${host} needs more rights than this user has`;
  return `cannot listen on ${host} port ${port}`;
}
