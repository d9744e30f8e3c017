import type { MonotonicClock } from "../../time/clock.ts";
import { AbortReason, abortReasonOf, clientLeft, stopped, timedOut } from "./abort-reason.ts";
import type { ConnectTimeout } from "./connect-timeout.ts";
import type { ReadTimeout, StartReadTimeout } from "./read-timeout.ts";
import { createUpload } from "./upload.ts";

export type UpstreamFetch = (url: string, init: BunFetchRequestInit) => Promise<Response>;

export interface ForwardDeps {
  /** Origin and path prefix; no trailing slash. */
  baseUrl: string;
  fetch: UpstreamFetch;
  connectTimeout: ConnectTimeout;
  startReadTimeout: StartReadTimeout;
  /** Fires when the program stops waiting for running answers. */
  stopping: AbortSignal;
  monotonic: MonotonicClock;
}

export interface UpstreamRequest {
  method: string;
  /** Begins with `/v1/`. */
  pathAndQuery: string;
  headers: Headers;
  /** A stream is sent as it arrives, in constant memory. */
  body: Uint8Array<ArrayBuffer> | string | ReadableStream<Uint8Array<ArrayBuffer>> | null;
  /** Bounds the wait for the head and every wait for bytes after it. */
  readTimeoutMs: number;
  /** Fires when the client leaves. */
  client: AbortSignal;
}

export interface UpstreamResponse {
  response: Response;
  readTimeout: ReadTimeout;
  /** Aborted with a `CallEnded` by whoever ended the call first. */
  signal: AbortSignal;
  /** Ends the call to the upstream. */
  abort: (reason: AbortReason) => void;
  /** Lets go of timers and listeners; every answer needs it in the end. */
  release: () => void;
}

/** A reset this soon after sending is a pooled connection that the upstream had just closed. */
const staleConnectionMs = 250;

/** The one place where the proxy calls out. @throws CallEnded where no response head comes */
export type Forward = (call: UpstreamRequest) => Promise<UpstreamResponse>;

export function createForward(deps: ForwardDeps): Forward {
  const getTargetUrl = targetUrlBelow(deps.baseUrl);
  // Whether the runtime's pool may hold a connection that was used before.
  let pooled = false;
  const running = new Set<(reason: AbortReason) => void>();
  deps.stopping.addEventListener("abort", () => {
    for (const abort of running) abort(stopped());
  });

  return async (call) => {
    const url = getTargetUrl(call.pathAndQuery);
    const aborter = new AbortController();
    const abort = (reason: AbortReason): void => aborter.abort(reason);
    running.add(abort);
    if (deps.stopping.aborted) abort(stopped());
    // Not taken away again: a request that has ended never fires it, and the two are forgotten together.
    call.client.addEventListener("abort", () => abort(clientLeft()), { once: true });
    if (call.client.aborted) abort(clientLeft());
    const readTimeout = deps.startReadTimeout(call.readTimeoutMs, () => abort(timedOut()));
    const stopConnectTimeout = deps.connectTimeout.watch(() => abort(timedOut()));
    const release = (): void => {
      running.delete(abort);
      readTimeout.clear();
    };
    const begunAt = deps.monotonic();
    const upload = call.body instanceof ReadableStream ? createUpload(call.body, readTimeout) : undefined;
    readTimeout.beginWait();
    try {
      const init = fetchInit(upload === undefined ? call : { ...call, body: upload.body }, aborter.signal);
      const response = await deps.fetch(url, init).catch((error: unknown) => {
        const stale = pooled && isStaleConnection(error, call, deps.monotonic() - begunAt) && !aborter.signal.aborted;
        if (!stale) throw error;
        return deps.fetch(url, { ...init, keepalive: false });
      });
      pooled = true;
      if (!isReadable(response)) throw new Error("The upstream's answer is not HTTP that was asked for.");
      return { response, readTimeout, signal: aborter.signal, abort, release };
    } catch (error) {
      const ended = abortReasonOf(error, aborter.signal);
      abort(ended);
      release();
      throw ended;
    } finally {
      upload?.releaseReadTimeout();
      readTimeout.endWait();
      stopConnectTimeout();
    }
  };
}

/**
 * No Response can be made with a status out of range (RFC 9110 section 15). Bun undoes the chunks and leaves any other
 * transfer coding in the bytes, while its name ends at this hop (1.4.5).
 * Remove the check of the coding when `fetch` rejects or decodes it.
 */
function isReadable({ status, headers }: Response): boolean {
  if (status < 200 || status > 599) return false;
  const coding = headers.get("transfer-encoding");
  return coding === null || coding.toLowerCase() === "chunked";
}

/** A last check right before the call: whatever a client sends, only the configured origin's `/v1/` is ever asked. */
function targetUrlBelow(baseUrl: string): (pathAndQuery: string) => string {
  const base = new URL(baseUrl);
  const prefix = `${base.pathname.replace(/\/$/, "")}/v1/`;
  return (pathAndQuery) => {
    // Nothing in such a path leads anywhere else, and most are such.
    if (/^\/v1\/[\w/-]*$/.test(pathAndQuery)) return baseUrl + pathAndQuery;
    const target = new URL(baseUrl + pathAndQuery);
    const inside = target.origin === base.origin && target.pathname.startsWith(prefix);
    if (!inside) throw new Error("The target lies outside the upstream.");
    return target.href;
  };
}

function fetchInit(call: UpstreamRequest, signal: AbortSignal): BunFetchRequestInit {
  return {
    method: call.method,
    headers: call.headers,
    body: call.body,
    signal,
    // A redirect is the client's to follow.
    redirect: "manual",
    // Else the bytes would no longer be those that the backend sent.
    decompress: false,
    // Bun's own limit is about five minutes; ours are the read deadline and the connect watch.
    timeout: false,
    // HTTP_PROXY and the like are meant for other programs of the operator's.
    proxy: false,
    // A streamed body can be sent once only, so it must not meet a kept connection that the upstream is closing.
    keepalive: !(call.body instanceof ReadableStream),
  };
}

/**
 * A POST can meet the upstream closing a connection that it kept alive (uvicorn does after 5 s); Bun repeats GET and PUT
 * by itself, a POST never. It is sent once more, on a new connection, if it came to nothing at once and can be repeated.
 * Remove when `fetch` retries a POST on such a connection (Bun 1.4.5).
 */
function isStaleConnection(error: unknown, call: UpstreamRequest, afterMs: number): boolean {
  const reset = error instanceof Error && "code" in error && error.code === "ECONNRESET";
  return reset && afterMs < staleConnectionMs && !(call.body instanceof ReadableStream);
}
