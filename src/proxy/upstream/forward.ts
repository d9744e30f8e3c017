// The call to a backend over `fetch`, its timeouts, and why it ended.
//
// It keeps true: whoever ends a request first says why, with an AbortReason, and all that belongs to it is aborted with
// that (`abort-reason.ts` has each reason). Only paths below the configured `/v1/` are asked for. A request that must
// not be sent twice gets no connection that may be closing (`connections.ts`). Only waits for the other side count
// against a timeout. An error says whether nothing was sent; whether another backend gets the request then,
// `failover.ts` decides. It knows the id of a key, and not its limits. What was tried for the connect timeout is told
// there.

import { createBag } from "../../runtime/bag.ts";
import {
  type AbortReason,
  clientLeft,
  clientStalled,
  failed,
  noProgressMs,
  revoked,
  sendFailureOf,
  stopped,
  timedOut,
  unconnected,
} from "./abort-reason.ts";
import {
  addressOf,
  type ConnectionPool,
  connectTo,
  type ConnectTimeout,
  countConnecting,
  createConnectionPools,
  createConnectTimeout,
  staysOpen,
} from "./connections.ts";
import { countProbes, serverOf } from "./probe.ts";
import { addressForClient } from "../headers.ts";
import { isOf, type KeyId, type SubjectId, subjectOf, type UserId } from "../../domain/keys.ts";
import type { Backend, CurrentCatalog } from "../../domain/models.ts";
import type { MonotonicClock } from "../../time/clock.ts";

export type UpstreamFetch = (url: string, init: BunFetchRequestInit) => Promise<Response>;

export interface ForwardDeps extends Pick<Backend, "baseUrl">, Partial<Pick<Backend, "socket">> {
  fetch: UpstreamFetch;
  pool: ConnectionPool;
  connectTimeout: ConnectTimeout;
  startReadTimeout: StartReadTimeout;
  running: ReturnType<typeof createRunningCalls>;
}

export interface UpstreamRequest {
  keyId: KeyId;
  userId?: UserId | undefined;
  /** When the request arrived, by the monotonic clock. */
  startedAt: number;
  method: string;
  /** Begins with `/v1/`. */
  pathAndQuery: string;
  headers: Headers;
  /** A stream is sent as it arrives, in constant memory. */
  body: Uint8Array<ArrayBuffer> | Blob | string | ReadableStream<Uint8Array<ArrayBuffer>> | null;
  /** Bounds the wait for the head and every wait for bytes after it. */
  readTimeoutMs: number;
  /** Fires when the client leaves. */
  client: AbortSignal;
  /** Called now and then while it runs, at least once in `readTimeoutMs`. */
  onLook?: () => void;
  /** Called with the length of each part of the response body. */
  onReceived: (bytes: number) => void;
  /** Called once, with what ends the request. */
  onStarted?: (abort: (reason: AbortReason) => void) => void;
}

export interface UpstreamResponse {
  response: Response;
  readTimeout: ReadTimeout;
  /** Aborted with the `AbortReason` of whoever ended the request first. */
  signal: AbortSignal;
  /** Ends the request to the upstream. */
  abort: (reason: AbortReason) => void;
  /** Called with each part of the body that was read, and with undefined once at its end. */
  onBodyRead: (part: Uint8Array | undefined) => void;
  /** Frees timers and listeners; due for every response in the end. */
  release: () => void;
}

/** Sends one request to its upstream: the only place that does. @throws AbortReason if no response head comes */
export type Forward = (request: UpstreamRequest) => Promise<UpstreamResponse>;

export function createForward(deps: ForwardDeps): Forward {
  const getTargetUrl = targetUrlBelow(deps.baseUrl);
  const base = new URL(deps.baseUrl);
  const { pool, socket } = deps;
  const always = {
    // The client follows redirects, not we.
    redirect: "manual",
    // The bytes stay those that the backend sent.
    decompress: false,
    // Bun's own limit is about five minutes; we have the read and connect timeouts.
    timeout: false,
    // HTTP_PROXY and the like are meant for the operator's other programs.
    proxy: false,
    ...(socket !== undefined && { unix: socket }),
  } as const;

  return async (request) => {
    const url = getTargetUrl(request.pathAndQuery);
    const aborter = new AbortController();
    const abort = (reason: AbortReason): void => aborter.abort(reason);
    const removeRunning = deps.running.add(request, abort);
    request.onStarted?.(abort);
    // Never removed: a request that has ended does not fire it, and the two are collected together.
    request.client.addEventListener("abort", () => abort(clientLeft()), { once: true });
    if (request.client.aborted) abort(clientLeft());
    let hasResponded = false;
    const onTimeout = (): void => abort(timedOut(hasResponded ? "between_bytes_timeout" : "first_byte_timeout"));
    const readTimeout = deps.startReadTimeout(request.readTimeoutMs, onTimeout, request.onLook);
    const stopConnectTimeout = deps.connectTimeout.watch((isCertain) =>
      abort(isCertain ? unconnected() : timedOut("connect_timeout")),
    );
    const { method, headers, body: given } = request;
    let upload: ReturnType<typeof createUpload> | undefined;
    if (given instanceof ReadableStream) {
      const clientTimeout = deps.startReadTimeout(noProgressMs, () => abort(clientStalled()));
      upload = createUpload(given, readTimeout, clientTimeout, stopConnectTimeout);
    }
    const release = (): void => {
      removeRunning();
      readTimeout.clear();
      upload?.clear();
    };
    readTimeout.beginWait();
    try {
      // Undefined: it gets a connection outside of the pool. One that is not repeated must have none that is being closed.
      const isRepeated = repeatedByBun.has(method);
      const mayPool = upload === undefined && method !== "DELETE";
      const putBack = mayPool ? pool.take(isRepeated ? undefined : staysOpen) : undefined;
      const { signal } = aborter;
      const [body, keepalive] = [upload?.body ?? given, putBack !== undefined];
      const response = await deps.fetch(url, { ...always, method, headers, body, signal, keepalive });
      hasResponded = true;
      deps.connectTimeout.onReceived();
      const coding = response.headers.get("transfer-encoding") ?? "chunked";
      // A Response cannot have a status out of range (RFC 9110 section 15). Bun decodes chunks and leaves any other transfer
      // coding in the bytes, while the header that names it ends at this hop (1.4.5). Remove when `fetch` decodes or rejects it.
      if (response.status < 200 || response.status > 599 || coding.toLowerCase() !== "chunked")
        throw failed("not_http");
      for (const name of addressHeaders) {
        const value = response.headers.get(name);
        if (value !== null) response.headers.set(name, addressForClient(value, url, base));
      }
      if (method === "HEAD" || response.body === null) putBack?.();
      const onBodyRead = (part: Uint8Array | undefined): void => {
        if (part === undefined) return putBack?.();
        deps.connectTimeout.onReceived();
        request.onReceived(part.length);
      };
      return { response, readTimeout, signal: aborter.signal, abort, onBodyRead, release };
    } catch (error) {
      const reason = sendFailureOf(error, aborter.signal);
      abort(reason);
      release();
      if (reason.isUnsent) upload?.giveBack();
      throw reason;
    } finally {
      upload?.releaseReadTimeout();
      readTimeout.endWait();
      stopConnectTimeout();
    }
  };
}

const addressHeaders = ["location", "content-location"];

/** The last check before sending: whatever a client asks for, only paths below the configured `/v1/` are requested. */
function targetUrlBelow(baseUrl: string): (pathAndQuery: string) => string {
  const base = new URL(baseUrl);
  const prefix = `${base.pathname.replace(/\/$/, "")}/v1/`;
  return (pathAndQuery) => {
    // Most paths are like this, and nothing in them can lead elsewhere.
    if (/^\/v1\/[\w/-]*$/.test(pathAndQuery)) return baseUrl + pathAndQuery;
    const target = new URL(baseUrl + pathAndQuery);
    const inside = target.origin === base.origin && target.pathname.startsWith(prefix);
    if (!inside) throw new Error("The target lies outside the upstream.");
    return target.href;
  };
}

/**
 * The methods that Bun repeats if the upstream breaks the pooled connection before it responds (1.4.5), except DELETE: the
 * upstream may have executed it. Remove the exception when Bun does not repeat DELETE.
 */
const repeatedByBun = new Set(["GET", "HEAD", "OPTIONS", "PUT"]);

type Call = Pick<UpstreamRequest, "keyId" | "userId" | "startedAt">;

interface RunningCallsDeps {
  /** Fires when the program no longer waits for running responses. */
  stopping: AbortSignal;
  /** Registers what runs when the responses of a key or user are to end that had begun until then, by the monotonic clock. */
  onKeyEnded: (listener: (id: SubjectId, begunUntil: number) => void) => void;
}

/** The requests that are at any upstream. */
export function createRunningCalls({ stopping, onKeyEnded }: RunningCallsDeps) {
  const running = createBag<Call & { abort: (reason: AbortReason) => void }>();
  /** Ends requests that were let in before their key was revoked, and are sent after it. */
  const revokedUntil = new Map<SubjectId, number>();
  stopping.addEventListener("abort", () => {
    for (const { abort } of running.list()) abort(stopped());
  });
  onKeyEnded((id, begunUntil) => {
    revokedUntil.set(id, Math.max(begunUntil, revokedUntil.get(id) ?? -1));
    for (const one of running.list()) if (isOf(id, one) && one.startedAt <= begunUntil) one.abort(revoked(id));
  });

  return {
    /** @param abort called when it has to end, at once if it had to before. @returns removes it */
    add({ keyId, userId, startedAt }: Call, abort: (reason: AbortReason) => void): () => void {
      if (stopping.aborted) abort(stopped());
      const ids = userId === undefined ? [keyId] : [keyId, subjectOf(userId)];
      for (const id of ids) if (startedAt <= (revokedUntil.get(id) ?? -1)) abort(revoked(id));
      return running.add({ keyId, userId, startedAt, abort });
    },
  };
}

/**
 * A client's body on its way to the upstream, in constant memory. The read timeout pauses while we wait for the client,
 * which has a limit of its own, and runs while we wait for the upstream: to take what there is, and in the end to respond.
 * @param onPull called with each pull. `fetch` pulls for the first time when it has a connection
 */
function createUpload(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  readTimeout: ReadTimeout,
  clientTimeout: ReadTimeout,
  onPull: () => void,
) {
  const reader = body.getReader();
  let usesReadTimeout = true;
  let isRead = false;
  /** Lets go of a body of which nothing was read, so that it can be sent to another upstream. */
  const giveBack = (): void => {
    if (!isRead) reader.releaseLock();
  };
  const source: UnderlyingDefaultSource<Uint8Array<ArrayBuffer>> = {
    async pull(controller) {
      isRead = true;
      onPull();
      if (usesReadTimeout) readTimeout.endWait();
      clientTimeout.beginWait();
      const { done, value } = await reader.read();
      clientTimeout.endWait();
      if (done) controller.close();
      else controller.enqueue(value);
      if (usesReadTimeout) readTimeout.beginWait();
    },
    cancel: (reason) => (isRead ? reader.cancel(reason) : giveBack()),
  };
  return {
    body: new ReadableStream(source, { highWaterMark: 0 }),
    /** Called when the response has begun: from then on only the response uses the read timeout. */
    releaseReadTimeout() {
      usesReadTimeout = false;
    },
    /** Ends the wait for the client for good. */
    clear: clientTimeout.clear,
    giveBack,
  };
}

/** What sends to each backend. */
export type Forwards = ReturnType<typeof createForwards>;

type Address = Pick<Backend, "url" | "baseUrl" | "socket">;

const connectTimeoutMs = 10_000;

/** Made when a backend is first used, and kept for as long as its address is in the catalog. */
export function createForwards(
  deps: Pick<ForwardDeps, "fetch" | "startReadTimeout"> &
    RunningCallsDeps & {
      catalog: CurrentCatalog;
      monotonic: MonotonicClock;
    },
) {
  const { catalog, fetch, startReadTimeout, monotonic } = deps;
  const running = createRunningCalls(deps);
  const poolOf = createConnectionPools(monotonic);
  const forwards = new Map<string, Forward>();
  /** By where they connect to: backends may share a server. */
  const connectTimeouts = new Map<string, ConnectTimeout>();
  catalog.onReplaced(({ backends }) => {
    const urls = new Set(backends.map(({ url }) => url));
    for (const url of forwards.keys()) if (!urls.has(url)) forwards.delete(url);
    const servers = new Set(backends.map(serverOf));
    for (const server of connectTimeouts.keys()) if (!servers.has(server)) connectTimeouts.delete(server);
  });

  function connectTimeoutOf(backend: Address): ConnectTimeout {
    return connectTimeouts.getOrInsertComputed(serverOf(backend), (server) => {
      const address = addressOf(backend.baseUrl, backend.socket);
      return createConnectTimeout({
        connect: connectTo(address),
        countConnecting: async () =>
          "port" in address ? await countConnecting(address.port, address.host) : undefined,
        countOthers: () => countProbes(server),
        limitMs: connectTimeoutMs,
        monotonic,
      });
    });
  }

  function forwardTo(address: Address): Forward {
    const { baseUrl, socket } = address;
    const pool = poolOf(baseUrl, socket);
    const connectTimeout = connectTimeoutOf(address);
    return createForward({ baseUrl, socket, fetch, pool, connectTimeout, startReadTimeout, running });
  }

  return {
    get: (backend: Address): Forward => forwards.getOrInsertComputed(backend.url, () => forwardTo(backend)),
  };
}

type StartReadTimeout = ReturnType<typeof createReadTimeouts>;
/** Bounds each wait for the other side, and only the waits: time that a slow client takes does not count against the upstream. */
type ReadTimeout = ReturnType<StartReadTimeout>;

interface Wait {
  /** Infinity while the other side is not waited for. */
  dueAt: number;
  onTimeout: () => void;
  onLook: (() => void) | undefined;
}

/**
 * Read timeouts that share one timer, set for the earliest of them. One timer for each response is a good part of what a
 * small response costs, and one for each wait more than a frame does.
 */
export function createReadTimeouts(monotonic: MonotonicClock) {
  const waits = createBag<Wait>();
  let timer: Timer | undefined;
  /** Never later than the earliest `dueAt`. */
  let firesAt = Infinity;

  function arm(dueAt: number): void {
    clearTimeout(timer);
    firesAt = dueAt;
    // It may outlast the responses by far, and must not keep the process alive.
    timer = setTimeout(check, Math.max(0, dueAt - monotonic())).unref();
  }

  function check(): void {
    const now = monotonic();
    firesAt = Infinity;
    for (const wait of waits.list()) {
      const isDue = wait.dueAt <= now;
      if (isDue) wait.dueAt = Infinity;
      (isDue ? wait.onTimeout : wait.onLook)?.();
    }
    const next = waits.list().reduce((earliest, { dueAt }) => Math.min(earliest, dueAt), Infinity);
    if (next < firesAt) arm(next);
  }

  /** Calls `onTimeout` when a wait has lasted `timeoutMs`, and `onLook` at least once in that time as long as none has. */
  return (timeoutMs: number, onTimeout: () => void, onLook?: () => void) => {
    const wait: Wait = { dueAt: Infinity, onTimeout, onLook };
    const remove = waits.add(wait);
    return {
      /** @param onClientTimeout given, the wait is for a client that takes nothing: it has `noProgressMs` at least */
      beginWait(onClientTimeout?: () => void): void {
        wait.onTimeout = onClientTimeout ?? onTimeout;
        wait.dueAt = monotonic() + (onClientTimeout === undefined ? timeoutMs : Math.max(timeoutMs, noProgressMs));
        if (wait.dueAt < firesAt) arm(wait.dueAt);
      },
      endWait(): void {
        wait.dueAt = Infinity;
      },
      /** Ends it for good. */
      clear(): void {
        wait.dueAt = Infinity;
        remove();
      },
    };
  };
}
