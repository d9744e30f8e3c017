import type { Config } from "../config/config.ts";
import type { Log } from "../log/log.ts";
import type { WallClock } from "../time/clock.ts";
import { ProxyError } from "./errors.ts";
import { upstreamRequestHeaders } from "./headers.ts";
import { eventLoopPortions } from "./json/read.ts";
import {
  type Admit,
  type HeaderPairs,
  mustBeReadable,
  needsAdmission,
  rateLimitHeaders,
  requireAdmitted,
  reservesTokens,
} from "./request/admit.ts";
import { authenticate, type FindKey } from "./request/authenticate.ts";
import { readBody } from "./request/body.ts";
import type { HeldBytes } from "./request/held-bytes.ts";
import type { ReadUsed } from "./request/limits-left.ts";
import { isModelAllowed, requireAllowedModel } from "./request/model-rule.ts";
import { type OwnKey, ownPaths, respondWithOwnKey } from "./request/own-key.ts";
import type { RequestQueue } from "./request/queue.ts";
import { hasBody, reservationFor, rewriteBody, type RewrittenBody } from "./request/rewrite-body.ts";
import { findResponseId, type ListCreators, requireOwnResponse } from "./request/stored-response.ts";
import { readTarget } from "./request/path.ts";
import type { RequestTracker, TrackerDeps } from "./request-tracker.ts";
import type { RecordUsage } from "./response/count.ts";
import { resolveModelList, restrictModelList } from "./response/model-list.ts";
import { receive } from "./response/receive.ts";
import { respond, type Responding } from "./response/respond.ts";
import type { StreamWait } from "./response/while-waiting.ts";
import { getEndpoint } from "./rewrite/endpoint.ts";
import { createRewriter, type RewriteRequest, type RewriteRules, type Rewritten } from "./rewrite/rewrite.ts";
import { noUsageAdded } from "./rewrite/stream-options.ts";
import { sendRequest } from "./send.ts";
import { endedByAdmin } from "./upstream/abort-reason.ts";
import type { Forward, UpstreamRequest } from "./upstream/forward.ts";
import type { StartReadTimeout } from "./upstream/read-timeout.ts";
import type { UsageHabits } from "./usage/usage-habits.ts";
import type { KeyId, KeyLimits } from "../domain/keys.ts";
import type { Admission, Reservation } from "../domain/admissions.ts";

export interface ProxyDeps extends TrackerDeps {
  config: Pick<Config, "upstream" | "rewrite"> & Pick<Config["proxy"], "corsOrigins" | "maxBodyBytes">;
  findKey: FindKey;
  /** The upstream's host and port, as the request log names it. */
  backend?: string;
  admit: Admit;
  readUsed: ReadUsed;
  /** What the holder of a key may know of it; undefined if it is gone. */
  findOwnKey: (keyId: KeyId) => Promise<OwnKey | undefined>;
  listCreators: ListCreators;
  queue: RequestQueue;
  forward: Forward;
  record: RecordUsage;
  /** The address at the other end of the connection. */
  peerAddress: (request: Request) => string | undefined;
  /** The client as the outermost trusted reverse proxy saw it. */
  clientAddress: (request: Request, peerAddress: string | undefined) => string;
  /** Takes a request that may be silent for minutes out of the server's idle timer. @returns undoes it */
  disableIdleTimeout: (request: Request) => () => void;
  /** Called if a response did not wait for the request's body. */
  closeSoon: (request: Request) => void;
  /** Fires when the server takes no more requests. */
  draining: AbortSignal;
  startReadTimeout: StartReadTimeout;
  heldBytes: HeldBytes;
  wall: WallClock;
  /** 0: never. */
  sseKeepaliveMs: number;
  log: Log;
}

/** One request on its way, as the steps need it. */
export interface Incoming {
  request: Request;
  tracker: RequestTracker;
  /** The address at the other end of the connection. */
  peerAddress: string | undefined;
  /** Undefined for a key without limits, and before it is admitted. */
  admission: Admission | undefined;
  /** The key's, for an error response to report; null once its admission is asked for. */
  unreportedLimits: KeyLimits | null;
  /** Every response gets them, errors too. */
  limitHeaders: HeaderPairs | undefined;
  /** Undefined if its client gets no comments. */
  wait: StreamWait | undefined;
}

export interface ServeDeps extends ProxyDeps {
  rewriters: RewritersByKey;
  habits: UsageHabits;
}

/** The rules with and without the usage that we request of streams: a backend may refuse `stream_options`. */
interface Rewriters {
  asking: RewriteRequest;
  unasked: RewriteRequest;
}

/** Those for keys with a limit of tokens, and for others: a stream whose usage nobody requests can only be estimated. */
export interface RewritersByKey {
  limited: Rewriters;
  plain: Rewriters;
}

export function createRewriters(rules: RewriteRules): RewritersByKey {
  const unasked: RewriteRules = { ...rules, forceStreamUsage: "off" };
  const force = rules.forceStreamUsage === "off" ? "final" : rules.forceStreamUsage;
  const limited: RewriteRules = { ...unasked, reservesTokens: true };
  return {
    limited: { asking: createRewriter({ ...limited, forceStreamUsage: force }), unasked: createRewriter(limited) },
    plain: { asking: createRewriter(rules), unasked: createRewriter(unasked) },
  };
}

/** The life of a request, after the path guard. Each step refuses with a ProxyError or ends with an AbortReason. */
export async function serve(incoming: Incoming, deps: ServeDeps): Promise<Response> {
  const { request, tracker, peerAddress } = incoming;
  const { method } = request;
  const { config, wall } = deps;
  const { path, pathAndQuery } = readTarget(request);
  if (deps.draining.aborted) throw new ProxyError("shutting_down");

  const key = await authenticate(request.headers, { findKey: deps.findKey, log: deps.log });
  tracker.keyId = key.id;
  // Before the body: the idle timer also cuts a body that flows (Bun 1.4.5). Remove when received bytes restart it.
  tracker.onFinished(deps.disableIdleTimeout(request));
  const { rules } = key;
  incoming.unreportedLimits = rules;
  if (path.startsWith(ownPaths)) {
    const own = { method, path, limits: rules, wall, log: deps.log };
    return complete(tracker, await respondWithOwnKey({ ...own, find: () => deps.findOwnKey(key.id) }));
  }
  const responseId = findResponseId(method, path);
  const asker = { keyId: key.id, method };
  const stored = responseId === undefined ? undefined : await requireOwnResponse(responseId, asker, deps);
  const limitsTokens = rules !== null && reservesTokens(rules);

  using held = deps.heldBytes.open(key.id);
  const { takesJson } = getEndpoint(path);
  const bodyRules = { takesJson, mustBeReadable: rules !== null && mustBeReadable(rules) };
  const received = await readBody(request, bodyRules, {
    startReadTimeout: deps.startReadTimeout,
    held,
    maxBytes: config.maxBodyBytes,
    waitForTurn: eventLoopPortions.waitForTurn,
  });
  const { asking, unasked } = deps.rewriters[limitsTokens ? "limited" : "plain"];
  const rewrittenBody = await rewriteBody(path, received, deps.habits.refusesOptions(path) ? unasked : asking);
  const { rewritten } = rewrittenBody;
  const { stream, model, changes, hasSeveralModels } = rewritten;
  tracker.isReceived = true;
  tracker.model = model;
  tracker.changes = changes;
  let modelList = resolveModelList(method, pathAndQuery, config.rewrite, wall);
  const allowed = rules?.allowed_models ?? null;
  if (allowed !== null) {
    requireAllowedModel(allowed, { path, hasBody: hasBody(received.body), model, isAmbiguous: hasSeveralModels });
    modelList = restrictModelList(pathAndQuery, modelList, (name) => isModelAllowed(allowed, name));
  }
  if (stream && method === "POST" && modelList === undefined && stored === undefined) incoming.wait?.begin();
  const limits = rules !== null && needsAdmission(rules) ? rules : undefined;
  const reservation = limitsTokens ? await reservationFor(received.body, rewritten) : undefined;
  if (limits !== undefined || deps.queue.hasPlaces) {
    await waitForTurn(incoming, { keyId: key.id, limits, reservation, path }, deps);
  }
  tracker.upstreamRequestSent(deps.backend);
  const { admission } = incoming;
  const common = { keyId: key.id, method, path, tracker, admission, reservation };
  const requestOf = ({ body, described }: RewrittenBody["outgoing"]): UpstreamRequest => ({
    keyId: key.id,
    startedAt: tracker.startedAt,
    method,
    pathAndQuery: modelList?.pathAndQuery ?? pathAndQuery,
    headers: upstreamRequestHeaders(request.headers, {
      ...described,
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
  const rewriteUnasked = (): Promise<RewrittenBody> => rewriteBody(path, received, unasked);
  const sent = await sendRequest({ ...common, rewritten: rewrittenBody, rewriteUnasked, requestOf }, deps);
  held.release();

  const head = await receive(sent.upstream, incoming);
  const usage = usageAsked(path, sent.rewritten, deps.habits);
  const responding = { ...common, ...usage, ...head, modelList, stored };
  return respond(responding, { record: deps.record, wall, sseKeepaliveMs: deps.sseKeepaliveMs });
}

/** What was asked of the usage of a stream, and what it tells of the backend. */
function usageAsked(
  path: string,
  { stream, usageAdded, asksForUsage }: Rewritten,
  habits: UsageHabits,
): Pick<Responding, "usageAdded" | "keepsUsage" | "onWholeStream"> {
  const isPlain = stream && !asksForUsage && usageAdded === noUsageAdded && getEndpoint(path).streamOptions;
  return {
    usageAdded,
    keepsUsage: usageAdded.includeUsage && habits.sendsUnasked(path),
    onWholeStream: isPlain ? (hasUsageAlone) => habits.learnUnasked(path, hasUsageAlone) : undefined,
  };
}

/** Ends a request that we respond to ourselves. */
export function complete(tracker: RequestTracker, response: Response): Response {
  tracker.status = response.status;
  tracker.finish("completed");
  return response;
}

interface ToSend {
  keyId: KeyId;
  /** Undefined if the key has none. */
  limits: KeyLimits | undefined;
  /** Undefined for a key without limits of tokens. */
  reservation: Reservation | undefined;
  path: string;
}

/** @throws ProxyError if the limits of the key refuse the request, or no place becomes free in time */
async function waitForTurn(
  incoming: Incoming,
  { keyId, limits, reservation, path }: ToSend,
  { queue, admit, wall }: Pick<ProxyDeps, "queue" | "admit" | "wall">,
): Promise<void> {
  const { tracker, request } = incoming;
  const asks = limits && {
    places: limits.max_concurrency,
    async ask(mayWait: boolean) {
      const answer = await admit(keyId, limits, reservation?.tokens ?? 0, mayWait, reservation?.leastTokens);
      // The head of a stream may go out while it waits.
      if (answer.refusedBy !== undefined) incoming.limitHeaders = rateLimitHeaders(limits, answer.used, wall());
      return answer;
    },
  };
  const queued = { keyId, startedAt: tracker.startedAt, client: request.signal, limits: asks };
  const { admission, leave } = await queue.enter(queued, (end) => tracker.onEndRequested(() => end(endedByAdmin())));
  tracker.onFinished(leave);
  // A refusal reports what is left itself.
  incoming.unreportedLimits = null;
  if (limits === undefined || admission === undefined) return;
  incoming.limitHeaders = requireAdmitted(limits, admission, { path, reservation, now: wall() });
  incoming.admission = admission;
}
