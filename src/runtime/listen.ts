import { chmodSync, rmSync } from "node:fs";
import { type Certificate, CertificateError } from "./certificate.ts";
import { createSocketRemover, findSocketProblem, socketPathOf } from "./unix-socket.ts";

type Handler<R = Request> = (request: R) => Response | Promise<Response>;

interface ListenOptions {
  /** An address, a name, or `unix:` and the path of a socket, which `prepareToListen` has to free first. */
  host: string;
  port: number;
  /** The mode of a UNIX socket. Without one, all users may connect, as with PostgreSQL: the folder decides who reaches it. */
  socketMode?: number;
  /** Lets several processes share the port. */
  shared: boolean;
  /** Serves HTTPS; not on a UNIX socket. */
  certificate?: KeyPair | undefined;
  connections: Connections;
  /** Native routes, matched before `fetch`. */
  routes?: Record<string, (request: Bun.BunRequest) => Response | Promise<Response>>;
  fetch: Handler;
  /** Responds when a handler throws. */
  internalError: () => Response;
}

type KeyPair = Pick<Certificate, "cert" | "key">;

export type Listener = ReturnType<typeof listen>;

/** What the application needs of the connection below a request. Created before the listener that it is attached to. */
export type Connections = ReturnType<typeof createConnections>;

export function createConnections(idleSeconds = defaultIdleSeconds) {
  let server: Bun.Server<undefined> | undefined;
  return {
    /** How long a connection may be silent or take for a request head: bytes that trickle in do not extend it (Bun 1.4.5). */
    idleSeconds,
    /** The address at the other end. */
    peerAddress: (request: Request): string | undefined => server?.requestIP(request)?.address,
    /** Takes a request out of the idle timer. @returns puts its connection back */
    disableIdleTimeout(request: Request): () => void {
      server?.timeout(request, 0);
      // The setting outlives the response: without this a kept-alive connection would stay open forever. Remove
      // when `server.timeout` applies to one request (Bun 1.4.5).
      return () => server?.timeout(request, idleSeconds);
    },
    /** Closes the connection soon after a response that did not wait for the request's body. */
    closeSoon: (request: Request): void => server?.timeout(request, Math.min(idleSeconds, lingerSeconds)),
    attach(attached: Bun.Server<undefined>): void {
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
/** Enough for a client that sends the rest of its body before it reads why it is refused. */
const lingerSeconds = 5;

/**
 * Removes the UNIX socket of a program that has gone. Bun would remove any (1.4.5), so that the program that listens on it
 * would be cut off without a word.
 * @throws ListenError
 */
export async function prepareToListen(host: string): Promise<void> {
  const path = socketPathOf(host);
  if (path === undefined) return;
  const problem = await findSocketProblem(path);
  if (problem !== undefined) throw new ListenError(problem, host);
  rmSync(path, { force: true });
}

/** @throws ListenError */
export function listen(options: ListenOptions) {
  const { host, connections } = options;
  const path = socketPathOf(host);
  const handlers = spreadHandlers(options);
  let certificate = path === undefined ? options.certificate : undefined;
  let server = startServer(handlers, certificate);
  connections.attach(server);
  const removeSocket = path === undefined ? () => {} : createSocketRemover(path);
  /** They serve the certificates that were replaced, while they still respond. */
  const earlier = new Map<Bun.Server<undefined>, Promise<void>>();

  return {
    /** `http://host:port`, `https://host:port` or `unix:/path`. */
    url: path === undefined ? server.url.origin : host,
    // Bun's own `reload` ignores the certificate (1.4.5). Remove the second server when it does not.
    /**
     * Serves connections from now on with it; those that are open, and their responses, go on.
     * @throws CertificateError if it cannot be used, and the earlier one stays in use
     * @throws ListenError if another program has taken the port
     */
    replaceCertificate(next: KeyPair): void {
      if (certificate === undefined) return;
      const previous = server;
      const atSamePort = { ...handlers, port: previous.port ?? options.port };
      earlier.set(
        previous,
        previous.stop().finally(() => earlier.delete(previous)),
      );
      try {
        server = startServer(atSamePort, next);
        certificate = next;
      } catch {
        server = startServer(atSamePort, certificate);
        throw new CertificateError("a server cannot use the certificate", "cert");
      } finally {
        connections.attach(server);
      }
    },
    /** Refuses new connections, and resolves once the running responses have ended. */
    async drain(): Promise<void> {
      const stopped = server.stop();
      removeSocket();
      await Promise.all([stopped, ...earlier.values()]);
    },
    /** Closes all connections at once, running responses too. */
    async cut(): Promise<void> {
      removeSocket();
      await Promise.all([server, ...earlier.keys()].map((one) => one.stop(true)));
    },
  };
}

/** One spreader for all connections of a listener. */
function spreadHandlers({
  routes = {},
  fetch,
  ...options
}: ListenOptions): ListenOptions & Required<Pick<ListenOptions, "routes">> {
  const spread = createBurstSpreader();
  const wrap = <R extends Request>(handler: (request: R) => Response | Promise<Response>) =>
    spread(options.certificate === undefined ? handler : withHttpUrl(handler));
  return {
    ...options,
    routes: Object.fromEntries(Object.entries(routes).map(([path, handler]) => [path, wrap(handler)])),
    fetch: wrap(fetch),
  };
}

/**
 * With `standardHostname: false`, Elysia (1.4.30) looks for the path right after `http://`, and in `https://host/path`
 * finds `/host/path`. So a request over HTTPS gets a URL with `http:` before it reaches Elysia; nothing here needs the
 * scheme. Remove when Elysia finds the path in both.
 */
const withHttpUrl =
  <R extends Request>(handler: Handler<R>): Handler<R> =>
  (request) => {
    const { url } = request;
    if (url.startsWith("https:")) Object.defineProperty(request, "url", { value: `http${url.slice("https".length)}` });
    return handler(request);
  };

function startServer(
  options: ReturnType<typeof spreadHandlers>,
  certificate: KeyPair | undefined,
): Bun.Server<undefined> {
  const { host, port, shared, connections, routes, fetch, internalError } = options;
  const path = socketPathOf(host);
  const address = { hostname: host, port, reusePort: shared };
  try {
    const server = Bun.serve({
      // Bun's types allow no idle timeout beside `unix`, but it works (1.4.5). Remove the assertion when they do.
      ...(path === undefined ? address : ({ unix: path } as Partial<typeof address> as typeof address)),
      ...(certificate === undefined ? {} : { tls: { cert: certificate.cert, key: certificate.key } }),
      idleTimeout: connections.idleSeconds,
      // Bodies that are streamed have no limit; those that are held have one of their own.
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
      // Bun's error page would show strangers the program's source.
      development: false,
      error: internalError,
      routes,
      fetch,
    });
    // The mode that the umask gives would often shut out the web server.
    if (path !== undefined) chmodSync(path, options.socketMode ?? 0o666);
    return server;
  } catch (error) {
    throw listenError(error, host, port);
  }
}

export function listenError(error: unknown, host: string, port: number): ListenError {
  return new ListenError(listenProblem(error, host, port), host);
}

function listenProblem(error: unknown, host: string, port: number): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (socketPathOf(host) !== undefined) return `cannot listen on ${host} (${String(code)})`;
  if (code === "EADDRINUSE") return `port ${port} on ${host} is in use by another program`;
  if (code === "EACCES") return `port ${port} on ${host} needs more rights than this user has`;
  return `cannot listen on ${host} port ${port}`;
}

/** How many requests may be begun in one tick. */
const maxPerTick = 128;

/**
 * Bun reads on for as long as 1024 connections are ready (1.4.5). If the responses to a flood need nothing but a function
 * call, its connections are ready again at once, and timers, messages of other threads and all other requests stand still
 * for seconds. So the requests beyond a number wait, in order, for the next ticks; those that are under way go on in
 * between. Remove when one tick serves each connection at most once.
 */
export function createBurstSpreader(): <R>(handler: Handler<R>) => Handler<R> {
  /** How many were begun since the last tick that is known to have ended. */
  let begun = 0;
  let waiting: (() => void)[] = [];
  let isScheduled = false;

  function schedule(): void {
    if (isScheduled) return;
    isScheduled = true;
    setImmediate(beginNext);
  }

  function beginNext(): void {
    isScheduled = false;
    const next = waiting.slice(0, maxPerTick);
    waiting = waiting.slice(maxPerTick);
    begun = next.length;
    for (const begin of next) begin();
    if (waiting.length > 0) schedule();
  }

  return (handler) => (request) => {
    if (begun < maxPerTick && waiting.length === 0) {
      begun++;
      // Not for each request: under usual load the guard costs nothing.
      if (begun === maxPerTick / 2) schedule();
      return handler(request);
    }
    schedule();
    return new Promise<void>((begin) => waiting.push(begin)).then(() => handler(request));
  };
}
