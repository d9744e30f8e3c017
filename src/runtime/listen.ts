import { createFloodGuard } from "./flood-guard.ts";

type Handler = (request: Request) => Response | Promise<Response>;

export interface ListenOptions {
  host: string;
  port: number;
  /** Lets several processes share the port. */
  shared: boolean;
  connections: Connections;
  /** Native routes, matched before `fetch`. */
  routes?: Record<string, (request: Bun.BunRequest) => Response | Promise<Response>>;
  fetch: Handler;
  /** Responds when a handler throws. */
  internalError: () => Response;
}

export interface Listener {
  url: string;
  /** Refuses new connections, and resolves once the running responses have ended. */
  drain(): Promise<void>;
  /** Closes all connections at once, running responses too. */
  cut(): Promise<void>;
}

/** What the application needs of the connection below a request. Created before the listener that it is attached to. */
export interface Connections {
  /** The address at the other end. */
  peerAddress(request: Request): string | undefined;
  /** How long a connection may be silent or take for a request head: bytes that trickle in do not extend it (Bun 1.4.5). */
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
      // The setting outlives the response: without this a kept-alive connection would stay open forever. Remove
      // when `server.timeout` applies to one request (Bun 1.4.5).
      return () => server?.timeout(request, idleSeconds);
    },
    attach(attached) {
      server = attached;
    },
  };
}

/** The port is taken or the address is not this machine's. The message is one line for the operator. */
export class ListenError extends Error {
  override name = "ListenError";

  constructor(
    message: string,
    readonly host: string,
  ) {
    super(message);
  }
}

/** Closes connections that are silent between requests or in the middle of a request head. */
const defaultIdleSeconds = 75;

/** @throws ListenError */
export function listen(options: ListenOptions): Listener {
  const server = serve(options);
  options.connections.attach(server);
  return { url: server.url.origin, drain: () => server.stop(), cut: () => server.stop(true) };
}

function serve({
  host,
  port,
  shared,
  connections,
  routes = {},
  fetch,
  internalError,
}: ListenOptions): Bun.Server<undefined> {
  const guard = createFloodGuard();
  try {
    return Bun.serve({
      hostname: host,
      port,
      reusePort: shared,
      idleTimeout: connections.idleSeconds,
      // Bodies that are streamed have no limit; those that are held have one of their own.
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
      // Bun's error page would show strangers the program's source.
      development: false,
      error: internalError,
      routes: Object.fromEntries(Object.entries(routes).map(([path, handler]) => [path, guard(handler)])),
      fetch: guard(fetch),
    });
  } catch (error) {
    throw listenError(error, host, port);
  }
}

export function listenError(error: unknown, host: string, port: number): ListenError {
  return new ListenError(listenProblem(error, host, port), host);
}

function listenProblem(error: unknown, host: string, port: number): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code === "EADDRINUSE") return `port ${port} on ${host} is in use by another program`;
  if (code === "EACCES") return `port ${port} on ${host} needs more rights than this user has`;
  return `cannot listen on ${host} port ${port}`;
}
