import type { Log } from "../log/log.ts";
import type { WallClock } from "../time/clock.ts";
import { ProxyError } from "./errors.ts";
import { type ReadUsed, reservationFor } from "./request/admit.ts";
import type { CorsOrigins } from "./request/cors.ts";
import { type ActiveKey, authenticate, type FindKey } from "./request/authenticate.ts";
import type { HeldBytes } from "./request/held-bytes.ts";
import { isModelAllowed, modelNotFound } from "./request/model-rule.ts";
import { type OwnKey, ownPaths, respondWithOwnKey } from "./request/own-key.ts";
import { conversationOf } from "./request/conversation.ts";
import type { CostOfBody, ReadBody } from "./request/hold-or-stream.ts";
import { readRequest } from "./request/read-request.ts";
import { rewriteBody, type RewrittenBody } from "./request/rewrite-body.ts";
import { readTarget, requireOpenPath } from "./request/path.ts";
import type { RequestTracker, TrackerDeps } from "./request-tracker.ts";
import type { RecordUsage } from "./response/count.ts";
import type { BackendModels } from "./response/backend-models.ts";
import { respondWithModels } from "./response/catalog-list.ts";
import { resolveModelList } from "./response/model-list.ts";
import { endWait } from "./response/after-waiting.ts";
import { respond, type Responding } from "./response/respond.ts";
import type { StreamWait } from "./response/while-waiting.ts";
import { type Endpoint, getEndpoint } from "./rewrite/endpoint.ts";
import type { ClientContext, Rewritten } from "./rewrite/rewrite.ts";
import type { CurrentRewriting } from "./rewrite/current-rewriting.ts";
import { noUsageAdded } from "./rewrite/stream-options.ts";
import { type ReadTimeouts, sendRequest } from "./send.ts";
import { type Announced, readIdOf, type StoredDeps, type StoredIds } from "./stored.ts";
import { endedByAdmin } from "./upstream/abort-reason.ts";
import type { Forwards } from "./upstream/forwards.ts";
import { isEventStream } from "./usage/body-kind.ts";
import type { HabitsOf, UsageHabits } from "./usage/usage-habits.ts";
import { type Asker, type RequestQueue, Wait } from "./waiting.ts";
import { type Engines, noConversation } from "../domain/backends.ts";
import type { KeyId, KeyLimits } from "../domain/keys.ts";
import type { Backend, Catalog, Target } from "../domain/models.ts";
import { hasLimit, tokenLimits } from "../domain/limits.ts";
import { cachedShareOf } from "../domain/usage.ts";
import type { Destination } from "../domain/admissions.ts";

export interface ProxyDeps extends TrackerDeps, StoredDeps {
  config: {
    upstream: ReadTimeouts;
    /** Undefined leaves CORS to the backend. */
    corsOrigins: CorsOrigins | undefined;
    /** Globs of paths that no key may use. */
    closedPaths: readonly string[];
    /** The largest body that is held. */
    maxBodyBytes: number;
    /** The console has the origin of `/v1`. */
    sharesOrigin: boolean;
  };
  rewriting: CurrentRewriting;
  backendModels: Pick<BackendModels, "findEntry" | "requestEnded">;
  findKey: FindKey;
  readUsed: ReadUsed;
  /** What the holder of a key may know of it; undefined if it is gone. */
  findOwnKey: (keyId: KeyId) => Promise<OwnKey | undefined>;
  queue: RequestQueue;
  forwards: Forwards;
  engines: Engines;
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
  /** The key's, which each response reports. */
  limits: KeyLimits | null;
  /** Undefined if its client gets no comments. */
  wait: StreamWait | undefined;
}

export interface RequestDeps extends ProxyDeps {
  habitsOf: HabitsOf;
  storedIds: StoredIds;
}

/** The life of a request, after the path guard. Each step refuses with a ProxyError or ends with an AbortReason. */
export async function runRequest(incoming: Incoming, deps: RequestDeps): Promise<Response> {
  const { request, tracker, peerAddress } = incoming;
  const { method } = request;
  const { config, wall } = deps;
  const { path, pathAndQuery } = readTarget(request);
  const endpoint = getEndpoint(path);
  const rewriting = deps.rewriting.latest;
  if (deps.draining.aborted) throw new ProxyError("shutting_down");

  const key = await knowKey(incoming, path, deps);
  const { rules } = key;
  if (path.startsWith(ownPaths)) {
    const own = { method, path, limits: rules, wall, log: deps.log };
    return complete(tracker, await respondWithOwnKey({ ...own, find: () => deps.findOwnKey(key.id) }));
  }
  const limitsTokens = rules !== null && hasLimit(rules, tokenLimits);
  const allowed = rules?.allowed_models ?? null;
  const isAllowed = (name: string): boolean => allowed === null || isModelAllowed(allowed, name);
  const { names } = rewriting;
  const { file, backends } = names.catalog;
  const listed = file && respondWithModels({ request, path, isAllowed, modelNotFound, wall }, names, deps);
  if (listed !== undefined) return complete(tracker, listed);
  if (file !== undefined) tracker.onFinished(() => deps.backendModels.requestEnded(tracker.status));

  using held = deps.heldBytes.open(key.id);
  const unlimited = allowed === null ? rewriting.plain : rewriting.named;
  const rewriters = limitsTokens ? rewriting.limited : unlimited;
  const hasChoice = backends.length > 1;
  // With a choice, this is known only once that is made.
  const isKnown = rewriters.mayAsk && !hasChoice;
  const refusesOptions = isKnown && deps.habitsOf(backends[0]?.name ?? "").refusesOptions(endpoint);
  const client = rewriting.goesByClient ? await contextOf(request, deps.engines) : undefined;
  const toRead = { request, tracker, path, rules, rewriting, rewriters, refusesOptions, client };
  const limits = rules !== null && hasLimit(rules) ? rules : undefined;
  const waiter = { keyId: key.id, limits, path };
  const limited = limits && openWait(incoming, waiter, deps);
  const askLimits = async (cost: CostOfBody): Promise<void> => limited?.askEarly(cost);
  const bounds = { held, askLimits, maxBytes: config.maxBodyBytes, party: key.id };
  const { received, rewrittenBody } = await readRequest(toRead, bounds);
  const { rewritten } = rewrittenBody;
  const ofModels = endpoint.folder === "models" ? { method, pathAndQuery, models: names.catalog, wall } : undefined;
  const modelList = ofModels && resolveModelList(ofModels, allowed === null ? undefined : isAllowed);
  if (rewritten.stream && method === "POST" && modelList === undefined) incoming.wait?.begin();
  const reservation = limitsTokens ? await reservationFor(received.body, rewritten, key.id) : undefined;
  const asker = { keyId: key.id, method, path };
  const naming = { ...asker, body: received.body, keeps: rewritten.isStored };
  // Batches of messages, but not `/v1/messages` itself.
  const mayName = endpoint.refers || (endpoint.folder === "messages" && endpoint.turns === undefined);
  const found = mayName ? await deps.storedIds.find(naming, backends, () => askLimits("look-up")) : undefined;
  const candidates = found?.backend === undefined ? rewritten.target.candidates : [found.backend];
  const hasPlaces = deps.queue.hasPlaces || hasChoice;
  const destination = destinationOf(incoming, key.id, { body: received.body, rewritten, candidates });
  const turn = limited ?? (hasPlaces ? openWait(incoming, waiter, deps) : undefined);
  if (turn !== undefined) await turn.enter(destination, reservation);
  const admission = turn?.admission;
  const common = { ...asker, tracker, admission, reservation, refers: found?.refers === true };
  const rewriteUnasked = (): Promise<RewrittenBody> => rewriteBody(path, received, rewriters.unasked, client, key.id);
  const bodies = { rewritten: rewrittenBody, rewriteUnasked };
  const target = {
    route: hasPlaces ? turn : undefined,
    backends: () => backendsNow(names.catalog, deps.rewriting.latest.names.catalog, rewritten.target),
    pathAndQuery: modelList?.pathAndQuery ?? pathAndQuery,
  };
  const toSend = { ...common, ...bodies, ...target, request, endpoint, peerAddress, timeouts: config.upstream };
  const sent = await sendRequest(toSend, deps);
  held.release();

  tracker.streamed = isEventStream({ contentType: sent.upstream.response.headers.get("content-type") });
  const backend = hasChoice ? tracker.backend : undefined;
  const { upstream, created }: Announced = found ? await deps.storedIds.announce(sent.upstream, found, backend) : sent;
  const { wait } = incoming;
  const head = wait === undefined ? { upstream, silentMs: 0 } : await endWait(upstream, path, wait);
  const usage = usageAsked(endpoint, sent.rewritten, deps.habitsOf(tracker.backend ?? ""));
  const responding = { ...common, ...usage, ...head, readId: found && readIdOf(found), created, modelList };
  const { record, sseKeepaliveMs } = deps;
  return respond(responding, { record, wall, sseKeepaliveMs, sharesOrigin: config.sharesOrigin });
}

/** @throws ProxyError if the request presents no active key, or one that may not use the path */
async function knowKey(incoming: Incoming, path: string, deps: RequestDeps): Promise<ActiveKey> {
  const { request, tracker } = incoming;
  const key = await authenticate(request.headers, deps);
  tracker.keyId = key.id;
  // Before the body: the idle timer also cuts a body that flows (Bun 1.4.5). Remove when received bytes restart it.
  tracker.onFinished(deps.disableIdleTimeout(request));
  incoming.limits = key.rules;
  if (!path.startsWith(ownPaths)) requireOpenPath(path, deps.config.closedPaths, key.rules);
  return key;
}

/** What the choice among several backends goes by. */
function destinationOf(
  { request: { headers }, tracker }: Incoming,
  keyId: KeyId,
  { body, rewritten, candidates }: { body: ReadBody; rewritten: Rewritten; candidates: readonly string[] },
): Destination {
  const { opening, changes, model } = rewritten;
  const isRead = body instanceof Uint8Array;
  const conversation =
    isRead && opening !== undefined ? conversationOf(headers, keyId, body, opening, changes) : noConversation;
  tracker.conversation = conversation.trace?.thread;
  return { model: model?.name, candidates, characters: isRead ? body.length : 0, conversation };
}

/**
 * A place is one at a backend as the catalog in use has it: a request that waited for it, perhaps since that backend went
 * away, goes to its new address. Not if the body has a name of the model that no longer holds.
 */
function backendsNow(begun: Catalog, inUse: Catalog, { model }: Target): readonly Backend[] {
  if (inUse === begun) return begun.backends;
  const sameModel = inUse.models.find(({ name }) => name === model?.name);
  if (sameModel?.servedAs !== model?.servedAs) return begun.backends;
  return begun.backends.map((backend) => inUse.backends.find(({ name }) => name === backend.name) ?? backend);
}

async function contextOf({ headers }: Request, { learn, enginesOf }: Engines): Promise<ClientContext> {
  await learn();
  return { userAgent: headers.get("user-agent"), enginesOf };
}

/** What was asked of the usage of a stream, and who learns from what it has. */
function usageAsked(
  endpoint: Endpoint,
  { stream, usageAdded, asksForUsage }: Rewritten,
  habits: UsageHabits,
): Pick<Responding, "usageAdded" | "keepsUsage" | "learning"> {
  const tells = stream && !asksForUsage && usageAdded === noUsageAdded && endpoint.streamOptions;
  return {
    usageAdded,
    keepsUsage: usageAdded.includeUsage && habits.sendsUnasked(endpoint),
    learning: tells ? { habits, endpoint } : undefined,
  };
}

/** Ends a request that we respond to ourselves. */
export function complete(tracker: RequestTracker, response: Response): Response {
  tracker.status = response.status;
  tracker.finish("completed");
  return response;
}

/** What it holds is given back when the request is over, whatever ends that. */
function openWait(
  { tracker, request }: Incoming,
  asker: Pick<Asker, "keyId" | "limits" | "path">,
  { queue }: Pick<ProxyDeps, "queue">,
): Wait {
  const turn = new Wait({ ...asker, startedAt: tracker.startedAt, client: request.signal }, queue);
  tracker.turn = turn;
  tracker.onEndRequested(() => turn.end(endedByAdmin()));
  tracker.onFinished((usage) => turn.leave(cachedShareOf(usage)));
  return turn;
}
