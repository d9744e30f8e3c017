import type { BackendSign, Choice } from "../domain/backends.ts";
import type { Backend } from "../domain/models.ts";
import { ProxyError } from "./errors.ts";
import type { RequestTracker } from "./request-tracker.ts";
import { AbortReason, clientLeft } from "./upstream/abort-reason.ts";
import type { UpstreamResponse } from "./upstream/forward.ts";
import type { Wait } from "./waiting.ts";

/** Where a request goes that has a place, or a choice. */
export type Route = Pick<Wait, keyof Choice | "report" | "moveOn" | "end">;

interface ToSend {
  tracker: RequestTracker;
  route: Route;
  /** The backends of the catalog that the request began with, where they are now. */
  backends: () => readonly Backend[];
  /** All that it names is a model of the catalog: a backend that says 404 does not serve what it should. */
  hasModel: boolean;
  /** Fires when the client leaves. */
  client: AbortSignal;
  /** Its body is held, or nothing of it has been read. */
  canOpenAgain: () => boolean;
  sendOnce: (backend: Backend) => Promise<UpstreamResponse>;
  /** Epoch milliseconds. */
  wall: () => number;
}

/**
 * Sends a request to the backend of its turn, and to others only where none has executed it: where no connection was made,
 * to one after the other; and once more where a backend responds that it is too busy. Everything else might be executed
 * twice, and what kills one backend must not visit the next.
 * @returns sends it. @throws AbortReason if no response head comes
 */
export function sendWithFailover(toSend: ToSend): () => Promise<UpstreamResponse> {
  const { tracker, route, backends, hasModel, client, canOpenAgain, sendOnce, wall } = toSend;
  let mayResend = true;

  async function moveOn(): Promise<boolean> {
    const left = tracker.record.backend;
    // It may wait now, and those who watch it see where.
    tracker.record.backend = undefined;
    tracker.onEndRequested(route.end);
    const hasMoved = await route.moveOn().finally(() => (tracker.record.backend = left));
    if (client.aborted) throw clientLeft();
    return hasMoved;
  }

  function nextBackend(): Backend {
    const { backend: name, reason, expectation, lastTurn } = route;
    const backend = backends().find((one) => one.name === name);
    if (backend === undefined) throw new Error(`There is no backend ${name}.`);
    tracker.record.reason = reason === "only" ? undefined : reason;
    tracker.record.expectation = expectation;
    tracker.lastTurn = lastTurn;
    return backend;
  }

  /** @returns undefined if nothing was sent, and it has a place at another backend */
  async function trySending(backend: Backend): Promise<UpstreamResponse | undefined> {
    try {
      return await sendOnce(backend);
    } catch (error) {
      if (!(error instanceof AbortReason)) throw error;
      const sign = signOfFailure(error);
      if (sign !== undefined) route.report(sign);
      if (!error.isUnsent || !canOpenAgain() || !(await moveOn())) throw error;
      return undefined;
    }
  }

  /** @returns the response of another backend; undefined if none has taken it: then that of this one is the client's */
  async function resend(busy: UpstreamResponse): Promise<UpstreamResponse | undefined> {
    const before = tracker.record.backend;
    try {
      if (!(await moveOn())) return undefined;
      const upstream = await send();
      discard(busy);
      return upstream;
    } catch (error) {
      // Too many wait for another one, or it has no connection either.
      if (error instanceof ProxyError || (error instanceof AbortReason && error.isUnsent)) {
        tracker.record.backend = before;
        tracker.upstreamResponded();
        return undefined;
      }
      discard(busy);
      throw error;
    }
  }

  async function send(): Promise<UpstreamResponse> {
    for (;;) {
      const backend = nextBackend();
      const upstream = await trySending(backend);
      if (upstream === undefined) continue;
      route.report(signOf(upstream.response, hasModel, wall()));
      if (!mayResend || !canOpenAgain() || !isTooBusy(upstream.response, backend)) return upstream;
      mayResend = false;
      const resent = await resend(upstream);
      if (resent !== undefined) return resent;
      // In its place stands what ended since: a wait, or a send that found no connection.
      tracker.onEndRequested(upstream.abort);
      return upstream;
    }
  }

  return send;
}

const isTooBusy = ({ status }: Response, { retry503 }: Backend): boolean =>
  status === 429 || (status === 503 && retry503);

function discard({ response, release }: UpstreamResponse): void {
  void response.body?.cancel().catch(() => {});
  release();
}

/** Whatever takes its connections, such as the port of a container that has exited: a probe tells whether it is up. */
const failedWith: Partial<Record<string, number>> = {
  ECONNRESET: 502,
  EPROTO: 502,
  not_http: 502,
  first_byte_timeout: 504,
};

function signOfFailure({ isUnsent, cause = "" }: AbortReason): BackendSign | undefined {
  if (isUnsent || cause === "connect_timeout") return { kind: "unreachable" };
  const status = failedWith[cause];
  return status === undefined ? undefined : { kind: "failed", status, retryAfterMs: undefined };
}

const failures = new Set([500, 502, 503, 504]);

function signOf({ status, headers }: Response, hasModel: boolean, now: number): BackendSign {
  if (status === 429) return { kind: "busy", retryAfterMs: retryAfterOf(headers, now) };
  if (!failures.has(status) && !(status === 404 && hasModel)) return { kind: "responded" };
  return { kind: "failed", status, retryAfterMs: retryAfterOf(headers, now) };
}

/** RFC 9110 section 10.2.3: seconds, or a date. */
function retryAfterOf(headers: Headers, now: number): number | undefined {
  const value = headers.get("retry-after");
  if (value === null) return undefined;
  const ms = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - now;
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}
