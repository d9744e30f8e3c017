import type { Reservation } from "../domain/admissions.ts";
import type { RewrittenBody } from "./request/rewrite-body.ts";
import type { RequestTracker } from "./request-tracker.ts";
import { chargeEvent, mayGenerate } from "./response/charge.ts";
import { readWhole } from "./response/pump.ts";
import type { RecordUsage } from "./response/count.ts";
import { AbortReason } from "./upstream/abort-reason.ts";
import type { Forward, UpstreamRequest, UpstreamResponse } from "./upstream/forward.ts";
import type { Admission } from "../domain/admissions.ts";
import type { KeyId } from "../domain/keys.ts";
import type { WallClock } from "../time/clock.ts";
import type { UsageHabits } from "./usage/usage-habits.ts";

export interface ToSend {
  keyId: KeyId;
  method: string;
  path: string;
  tracker: RequestTracker;
  admission: Admission | undefined;
  /** Undefined for a key without limits of tokens. */
  reservation: Reservation | undefined;
  rewritten: RewrittenBody;
  /** The body as it would be if nobody asked for usage. */
  rewriteUnasked: () => Promise<RewrittenBody>;
  requestOf: (body: RewrittenBody["outgoing"]) => UpstreamRequest;
}

export interface SendDeps {
  forward: Forward;
  habits: UsageHabits;
  record: RecordUsage;
  wall: WallClock;
}

/** The response, and what was sent last. */
interface Sent {
  upstream: UpstreamResponse;
  rewritten: RewrittenBody["rewritten"];
}

/**
 * Sends a request to the backend, and once more if that refuses the `stream_options` that we added: nothing was generated.
 * @throws AbortReason if no response head comes
 */
export async function sendRequest(toSend: ToSend, deps: SendDeps): Promise<Sent> {
  const { rewritten, outgoing } = toSend.rewritten;
  const upstream = await forwardCharged(toSend, outgoing, deps);
  const { status } = upstream.response;
  const mayRefuseOptions =
    (status === 400 || status === 422) && rewritten.changes?.kinds.includes("stream_usage") === true;
  if (!mayRefuseOptions) return { upstream, rewritten };

  const body = await readOrRelease(upstream);
  if (
    !(body instanceof Uint8Array) ||
    !Buffer.from(body.buffer, body.byteOffset, body.length).includes("stream_options")
  ) {
    return {
      upstream: { ...upstream, response: new Response(body, upstream.response), ...alreadyRead(body, upstream) },
      rewritten,
    };
  }
  upstream.release();
  toSend.tracker.sends = 2;
  const second = await toSend.rewriteUnasked();
  toSend.tracker.changes = second.rewritten.changes;
  const response = await forwardCharged(toSend, second.outgoing, deps);
  // An error that only quotes the body would be the same again.
  if (response.response.ok) deps.habits.learnRefusal(toSend.path);
  return { upstream: response, rewritten: second.rewritten };
}

/** A longer refusal passes as it is. */
const maxRefusalBytes = 64 * 1024;

async function readOrRelease(upstream: UpstreamResponse): ReturnType<typeof readWhole> {
  try {
    return await readWhole(upstream, maxRefusalBytes);
  } catch (error) {
    upstream.release();
    throw error;
  }
}

const alreadyRead = (
  body: Uint8Array | ReadableStream,
  { onBodyRead }: UpstreamResponse,
): Pick<UpstreamResponse, "onBodyRead"> => ({
  onBodyRead: body instanceof Uint8Array ? () => {} : onBodyRead,
});

/** A client that leaves before the head is charged the estimated input: the backend has read it, or is about to. */
async function forwardCharged(
  toSend: ToSend,
  outgoing: RewrittenBody["outgoing"],
  deps: SendDeps,
): Promise<UpstreamResponse> {
  try {
    const upstream = await deps.forward(toSend.requestOf(outgoing));
    toSend.tracker.upstreamResponded();
    return upstream;
  } catch (error) {
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
