import type { Admission, Reservation } from "../domain/admissions.ts";
import type { Backend } from "../domain/models.ts";
import type { WallClock } from "../time/clock.ts";
import { type Route, type SendOnce, type SendToOne, sendWithFailover } from "./failover.ts";
import { upstreamRequestHeaders } from "./headers.ts";
import type { OutgoingRequestBody, RewrittenBody } from "./request/rewrite-body.ts";
import { chargeEvent, mayGenerate } from "./response/charge.ts";
import type { Endpoint } from "./rewrite/endpoint.ts";
import { readAlready, readOrRelease } from "./response/pump.ts";
import type { RecordUsage } from "./response/count.ts";
import type { RequestTracker } from "./request-tracker.ts";
import { AbortReason, endedByAdmin } from "./upstream/abort-reason.ts";
import type { UpstreamRequest, UpstreamResponse } from "./upstream/forward.ts";
import type { Forwards } from "./upstream/forwards.ts";
import type { HabitsOf } from "./usage/usage-habits.ts";

/** A request on its way to a backend. */
export interface ToSend extends Pick<UpstreamRequest, "keyId" | "method" | "pathAndQuery"> {
  request: Request;
  tracker: RequestTracker;
  /** The address at the other end of the connection. */
  peerAddress: string | undefined;
  /** The URL's pathname. */
  path: string;
  endpoint: Endpoint;
  timeouts: ReadTimeouts;
  admission: Admission | undefined;
  /** Undefined for a key without limits of tokens. */
  reservation: Reservation | undefined;
  /** It names what a backend may have stored. */
  refers: boolean;
  /** Undefined if there is one backend, which takes every request at any time. */
  route: Route | undefined;
  /** The backends of the catalog that the request began with, where they are now. */
  backends: () => readonly Backend[];
  rewritten: RewrittenBody;
  /** The body as it would be without asking for usage. */
  rewriteUnasked: () => Promise<RewrittenBody>;
}

export interface ReadTimeouts {
  streamReadTimeoutMs: number;
  nonStreamReadTimeoutMs: number;
}

export interface SendDeps {
  forwards: Forwards;
  habitsOf: HabitsOf;
  record: RecordUsage;
  wall: WallClock;
}

/** The response, and what was sent last. */
interface Sent {
  upstream: UpstreamResponse;
  rewritten: RewrittenBody["rewritten"];
}

/**
 * Sends a request to its backend, and once more if that refuses the `stream_options` that we added: nothing was generated.
 * @throws AbortReason if no response head comes
 */
export async function sendRequest(toSend: ToSend, deps: SendDeps): Promise<Sent> {
  const { request, tracker, endpoint, route, backends } = toSend;
  // With a choice, it is known only now.
  const isRefused =
    route !== undefined && asksForUsage(toSend.rewritten) && deps.habitsOf(route.backend).refusesOptions(endpoint);
  const { rewritten, outgoing } = isRefused ? await rewriteUnasked(toSend) : toSend.rewritten;
  const sendOnce: SendOnce = (...sent) => sendCharged(toSend, sent, deps);
  // No other backend may get it.
  const sendToOnly: SendToOne = (body) => {
    const [backend] = backends();
    if (backend === undefined) throw new Error("There is no backend.");
    tracker.upstreamRequestSent(backend.name);
    return sendCharged(toSend, [body, backend], deps);
  };
  const hasModel = endpoint.takesJson && rewritten.target.model !== undefined && !toSend.refers;
  const send =
    route === undefined
      ? sendToOnly
      : sendWithFailover({ tracker, route, backends, hasModel, client: request.signal, sendOnce, wall: deps.wall });
  const upstream = await send(outgoing);
  const { status } = upstream.response;
  const mayRefuseOptions = (status === 400 || status === 422) && asksForUsage({ rewritten });
  if (!mayRefuseOptions) return { upstream, rewritten };

  const body = await readOrRelease(upstream, maxRefusalBytes);
  if (
    !(body instanceof Uint8Array) ||
    !Buffer.from(body.buffer, body.byteOffset, body.length).includes("stream_options")
  ) {
    return { upstream: readAlready(upstream, body), rewritten };
  }
  upstream.release();
  const second = await rewriteUnasked(toSend);
  const response = await send(second.outgoing);
  // An error that only quotes the body would be the same again.
  if (response.response.ok) deps.habitsOf(tracker.backend ?? "").learnRefusal(endpoint);
  return { upstream: response, rewritten: second.rewritten };
}

const asksForUsage = ({ rewritten }: Pick<RewrittenBody, "rewritten">): boolean =>
  rewritten.changes?.kinds.includes("stream_usage") === true;

async function rewriteUnasked({ tracker, rewriteUnasked: rewrite }: ToSend): Promise<RewrittenBody> {
  const unasked = await rewrite();
  tracker.changes = unasked.rewritten.changes;
  return unasked;
}

/** A longer refusal passes as it is. */
const maxRefusalBytes = 64 * 1024;

/** A client that leaves before the head is charged the estimated input: the backend has read it, or is about to. */
async function sendCharged(
  toSend: ToSend,
  [body, backend]: Parameters<SendOnce>,
  deps: SendDeps,
): Promise<UpstreamResponse> {
  const { tracker } = toSend;
  tracker.sends += 1;
  try {
    const upstream = await deps.forwards.get(backend)(upstreamRequestOf(toSend, body, backend));
    tracker.upstreamResponded();
    return upstream;
  } catch (error) {
    if (error instanceof AbortReason && error.isUnsent) tracker.sends -= 1;
    if (error instanceof AbortReason && error.outcome === "client_left") await chargeInput(toSend, deps);
    throw error;
  }
}

async function chargeInput(
  { keyId, method, path, tracker, admission, reservation }: ToSend,
  { record, wall }: SendDeps,
): Promise<void> {
  if (reservation === undefined || !mayGenerate(method, path)) return;
  const estimatedTokens = reservation.inputTokens;
  tracker.estimatedTokens = estimatedTokens;
  await record(chargeEvent({ keyId, closedAt: wall() }, { estimatedTokens, admission }));
}

function upstreamRequestOf(
  { request, tracker, peerAddress, keyId, method, pathAndQuery, timeouts, route, rewritten }: ToSend,
  { open, described }: OutgoingRequestBody,
  { apiKey: upstreamApiKey }: Backend,
): UpstreamRequest {
  const { requestId, startedAt, bodyReceived } = tracker;
  return {
    keyId,
    startedAt,
    method,
    pathAndQuery,
    headers: upstreamRequestHeaders(request.headers, { ...described, peerAddress, upstreamApiKey, requestId }),
    body: open(),
    readTimeoutMs: rewritten.rewritten.stream ? timeouts.streamReadTimeoutMs : timeouts.nonStreamReadTimeoutMs,
    client: request.signal,
    onReceived: route === undefined ? bodyReceived : reportBegun(route, bodyReceived),
    onStarted: (abort) => tracker.onEndRequested(() => abort(endedByAdmin())),
  };
}

function reportBegun({ report }: Route, received: RequestTracker["bodyReceived"]): UpstreamRequest["onReceived"] {
  let hasBegun = false;
  return (bytes) => {
    if (!hasBegun) report({ kind: "begun" });
    hasBegun = true;
    received(bytes);
  };
}
