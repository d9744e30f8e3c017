// The life of a request, after the path guard: one object, and a step for each thing that happens to it.
//
//   know its key -> answer it ourselves | read its body -> choose where it may go -> admit it -> send it -> answer
//
// Its fields stand in the order in which they become known, and each step sets its own. A step refuses with a ProxyError, or
// ends with an AbortReason. It keeps true: whatever ends a request, what it holds is given back once (`RequestTracker`), and
// its response has our headers; a client that waits for long in a stream gets heartbeats, and an error then as an event.
//
// It knows no storage: keys, counts and other processes come as arguments.

import type { Log } from "../log/log.ts";
import type { WallClock } from "../time/clock.ts";
import { type ErrorCode, failureResponse, ProxyError } from "./errors.ts";
import { sendWithFailover } from "./failover.ts";
import { addDebugHeaders, setLimitHeaders, upstreamRequestHeaders } from "./headers.ts";
import { eventLoopPortions } from "./json/read.ts";
import {
  type CodexReader,
  rateLimitHeaders,
  type ReadUsed,
  readLimitsLeft,
  reservationFor,
} from "./request/limit-refusals.ts";
import { type ActiveKey, authenticate, type FindKey, limitedSubjects } from "./request/authenticate.ts";
import { type Bytes, hasBody, noBody, outgoingBodyOf, readBody } from "./request/body.ts";
import { conversationOf } from "./request/conversation.ts";
import { applyCors, type CorsOrigins, findPreflightResponse } from "./request/cors.ts";
import { isHalfSent } from "./request/half-sent.ts";
import { type HeldBytes, HeldShare } from "./request/body-budget-and-pace.ts";
import { isModelAllowed, memberNotAllowed, requireAllowedModel } from "./request/model-rule.ts";
import { type OwnKey, ownPaths, respondAtOwnPath } from "./request/own-answers.ts";
import { findPathAndQuery, loggedPath, readTarget, requireOpenPath } from "./request/path.ts";
import { classOfBody, classOfHeaders } from "./request/request-class.ts";
import { userHeadersOf, type Users, type UsersDeps } from "./request/users.ts";
import { RequestTracker, type TrackerDeps } from "./request-tracker.ts";
import { asEventStream } from "./response/after-waiting.ts";
import type { BackendModels } from "./response/discovered-models.ts";
import { modelNotFound, respondWithModels } from "./response/catalog-list.ts";
import { chargeEvent, mayGenerate } from "./response/count.ts";
import type { RecordUsage } from "./response/count.ts";
import { isMessagesPath } from "./response/dialect.ts";
import { markRefusal, maxRefusalBytes } from "./response/full-context.ts";
import { type ModelListRequest, resolveModelList } from "./response/model-list.ts";
import { readAlready, readOrRelease } from "./response/pump.ts";
import { ClientResponse } from "./response/respond.ts";
import { createStreamWait, heartbeatsUntil, type StreamWait } from "./response/while-waiting.ts";
import { getEndpoint } from "./rewrite/endpoint.ts";
import { listModelNames, resolveModel } from "./rewrite/model-names.ts";
import type {
  ClientContext,
  CurrentRewriting,
  RewriteRequest,
  Rewriters,
  Rewriting,
  Rewritten,
} from "./rewrite/rewrite.ts";
import { noUsageAdded } from "./rewrite/requested-stream.ts";
import { type Announced, type Found, readIdOf, type StoredDeps, type StoredIds } from "./stored.ts";
import { AbortReason, classifyFailure } from "./upstream/abort-reason.ts";
import type { Forwards, UpstreamResponse } from "./upstream/forward.ts";
import { mediaTypeOf } from "./stream/body-kind.ts";
import type { HabitsOf } from "./stream/usage.ts";
import { type RequestQueue, Wait } from "./waiting.ts";
import type { Reservation } from "../domain/admissions.ts";
import { type Engines, noConversation } from "../domain/backends.ts";
import type { KeyId, Subject } from "../domain/keys.ts";
import { hasLimit, type Priority, tokenLimits } from "../domain/limits.ts";
import type { Backend } from "../domain/models.ts";
import { type Program, programOf } from "../domain/requests.ts";

export interface ProxyDeps extends TrackerDeps, StoredDeps, UsersDeps {
  config: {
    upstream: { streamReadTimeoutMs: number; nonStreamReadTimeoutMs: number };
    /** Undefined leaves CORS to the backend. */
    corsOrigins: CorsOrigins | undefined;
    /** Globs of paths that no key may use. */
    closedPaths: readonly string[];
    /** The origin of `/v1` as clients see it. */
    publicUrl?: string | undefined;
    /** A sentence that says whom to ask about a refusal. */
    contact: string | undefined;
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
  engines: Pick<Engines, "enginesOf">;
  record: RecordUsage;
  /** A text that nobody knows who has not the server's secret; the same in all instances and after restarts. */
  saltOf: (text: string) => string;
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

interface LifeDeps extends ProxyDeps {
  habitsOf: HabitsOf;
  firstOfCodex: CodexReader["first"];
  storedIds: StoredIds;
  users: Users;
}

/** Before its path is read, and before its key is known. */
const unknownEndpoint = getEndpoint("");
const nobody: ActiveKey = { id: 0, rules: null };

export class LifeOfRequest {
  readonly #deps: LifeDeps;
  readonly #request: Request;
  readonly #method: string;
  readonly #peerAddress: string | undefined;
  readonly #tracker: RequestTracker;
  readonly #program: Program | undefined;
  /** A request keeps what it began with. */
  readonly #rewriting: Rewriting;
  /** Undefined if its client gets no heartbeats. */
  #wait: StreamWait | undefined;

  #path = "";
  /** Empty if the host is invalid. */
  readonly #pathAndQuery: string;
  #endpoint = unknownEndpoint;
  #key = nobody;
  /** Whose limits it asks. */
  #subjects: readonly Subject[] | undefined;
  /** Undefined unless its client is Codex. */
  #codex: CodexReader | undefined;
  #isLimited = false;
  #limitsTokens = false;
  #priority: Priority | undefined;
  #isUserInBody = false;
  /** Holds what the request has of its key and at a backend; undefined: nothing. */
  #turn: Wait | undefined;

  #rewriters: Rewriters;
  #client: ClientContext | undefined;
  #received = noBody;
  #rewritten: Rewritten;
  /** What is sent of its body, if that is held. */
  #pieces: readonly Bytes[] | undefined;

  #modelList: ModelListRequest | undefined;
  #found: Found | undefined;
  #candidates: readonly string[] = [];

  #reservation: Reservation | undefined;
  /** It has a place at a backend, or a choice. */
  #hasPlace = false;
  /** Where it was sent last. */
  #backend: Backend | undefined;

  readonly #mayUse = (name: string): boolean => {
    const allowed = this.#key.rules?.allowed_models ?? null;
    return allowed === null || isModelAllowed(allowed, name);
  };

  constructor(request: Request, deps: LifeDeps) {
    this.#deps = deps;
    this.#request = request;
    this.#method = request.method;
    this.#rewriting = deps.rewriting.latest;
    this.#rewriters = this.#rewriting.plain;
    this.#rewritten = this.#rewriting.unread;
    this.#peerAddress = deps.peerAddress(request);
    const pathAndQuery = findPathAndQuery(request.url);
    this.#pathAndQuery = pathAndQuery ?? "";
    const { headers } = request;
    const clientProgram = clientProgramForm.exec(headers.get("user-agent") ?? "")?.[0];
    this.#program = programOf(clientProgram);
    const requestId = headers.get("x-request-id") ?? "";
    this.#tracker = new RequestTracker(deps, {
      requestId: requestIdForm.test(requestId) ? requestId : Bun.randomUUIDv7(),
      traceId: traceForm.exec(headers.get("traceparent") ?? "")?.[1],
      method: request.method,
      path: loggedPath(request, pathAndQuery),
      clientAddress: deps.clientAddress(request, this.#peerAddress),
      clientProgram,
      requestClass: classOfHeaders(headers, this.#program),
    });
  }

  async handle(): Promise<Response> {
    const { config, sseKeepaliveMs } = this.#deps;
    const preflight = config.corsOrigins && findPreflightResponse(this.#request, config.corsOrigins);
    if (preflight !== undefined) return this.#complete(preflight);
    return sseKeepaliveMs > 0 ? this.#respondOrKeepAlive(sseKeepaliveMs) : this.#respond();
  }

  /** Answers a request that gets no further than the listener. */
  refuse(code: ErrorCode): Response {
    return this.#fail(new ProxyError(code));
  }

  /** While a stream waits in the queue or for the backend, its client gets heartbeats. */
  async #respondOrKeepAlive(keepaliveMs: number) {
    const waits = Promise.withResolvers<undefined>();
    this.#wait = createStreamWait(keepaliveMs, () => {
      this.#tracker.headSent();
      waits.resolve(undefined);
    });
    const response = this.#respond().finally(this.#wait.end);
    const inTime = await Promise.race([response, waits.promise]);
    if (inTime !== undefined) return inTime;
    const { clientProgram } = this.#tracker.record;
    const waiting = { path: this.#path, clientProgram, keepaliveMs, rank: () => this.#turn?.rank() };
    const stream = heartbeatsUntil(response, waiting);
    return this.#withOurHeaders(stream, undefined, false);
  }

  async #respond() {
    try {
      await this.#knowKey();
      const own = this.#answerOurselves();
      if (own !== undefined) return this.#withOurHeaders(this.#complete(await own));
      using held = new HeldShare(this.#deps.heldBytes, this.#key.id);
      await this.#read(held);
      await this.#choose();
      await this.#admit();
      const upstream = await this.#send();
      held.release();
      return this.#withOurHeaders(await this.#answer(upstream));
    } catch (error) {
      const subjects = this.#subjects;
      const isUnreported =
        subjects !== undefined && this.#turn?.admission === undefined && !this.#request.signal.aborted;
      const left = isUnreported ? await readLimitsLeft(subjects, this.#deps, this.#codex) : undefined;
      const isCutShort = !this.#tracker.isReceived && (await isHalfSent(this.#request));
      const response = this.#fail(error, left);
      // Now that the idle timeout is restored.
      if (isCutShort) this.#deps.closeSoon(this.#request);
      return response;
    }
  }

  /** @throws ProxyError if the request presents no active key, or one that may not use the path */
  async #knowKey() {
    const { draining, disableIdleTimeout, config } = this.#deps;
    const path = readTarget(this.#request, this.#pathAndQuery);
    this.#path = path;
    this.#endpoint = getEndpoint(path);
    if (draining.aborted) throw new ProxyError("shutting_down");
    const key = await authenticate(this.#request.headers, this.#deps);
    this.#tracker.record.keyId = key.id;
    // Before the body: the idle timer also cuts a body that flows (Bun 1.4.5). Remove when received bytes restart it.
    this.#tracker.onFinished.push(disableIdleTimeout(this.#request));
    this.#use(key);
    if (!path.startsWith(ownPaths)) requireOpenPath(path, config.closedPaths, key.rules);
    const from = key.rules?.users_from ?? null;
    const isOwn = key.userId !== undefined;
    this.#isUserInBody = from === "body" && this.#method === "POST" && !isOwn;
    if (isOwn || (from !== null && !this.#isUserInBody)) this.#use(await this.#deps.users.know(key, this.#request));
  }

  /** From now on it is a request of the key, and of its user. */
  #use(key: ActiveKey) {
    const { rules, teamId, userId } = key;
    this.#key = key;
    this.#tracker.record.teamId = teamId;
    this.#tracker.record.userId = userId;
    if (rules === null) return;
    this.#isLimited = hasLimit(rules);
    this.#limitsTokens = hasLimit(rules, tokenLimits);
    this.#subjects = this.#isLimited ? limitedSubjects(key, rules, this.#path) : undefined;
    if (this.#program === "codex") this.#codex = { keyId: key.id, first: this.#deps.firstOfCodex };
    this.#priority = rules.priority ?? undefined;
  }

  /** What a key may know of itself, and the models of a file; undefined for what a backend answers. */
  #answerOurselves() {
    const { wall, log, findOwnKey, backendModels } = this.#deps;
    const [method, path, { id }, { names }] = [this.#method, this.#path, this.#key, this.#rewriting];
    if (path.startsWith(ownPaths)) {
      const [subjects, find, mayUse] = [this.#subjects ?? [], () => findOwnKey(id), this.#mayUse];
      return respondAtOwnPath({ method, path, names, mayUse, subjects, wall, log, find });
    }
    if (names.catalog.file === undefined) return undefined;
    const asked = { request: this.#request, path, isAllowed: this.#mayUse, wall };
    const listed = respondWithModels(asked, names, backendModels);
    if (listed !== undefined) return listed;
    this.#tracker.onFinished.push(() => backendModels.requestEnded(this.#tracker.record.status));
    return undefined;
  }

  /**
   * Reads the body as far as its rules need, and rewrites it for the model that it names.
   * @throws as `readBody`; ProxyError if the key may not use that model, something goes round its rules, or no backend has it
   */
  async #read(held: HeldShare) {
    const { habitsOf, engines, users, config } = this.#deps;
    const [request, rewriting] = [this.#request, this.#rewriting];
    const { names } = rewriting;
    const allowed = this.#key.rules?.allowed_models ?? null;
    // Its limits are not known before whose it is.
    if (!this.#isUserInBody && this.#isLimited) this.#openTurn();
    const bodyRules = {
      endpoint: this.#endpoint,
      // Nothing else can be held to the key's limits and models, or tell its user.
      mustBeReadable: allowed !== null || this.#isUserInBody || this.#isLimited,
      readsForms: names.catalog.file !== undefined,
      checksForms: allowed !== null,
    };
    const received = await readBody(request, bodyRules, {
      held,
      askLimits: async (cost) => this.#turn?.askEarly(cost),
      maxBytes: config.maxBodyBytes,
      waitForTurn: eventLoopPortions.waitForTurn,
      party: this.#key.id,
    });
    this.#received = received;
    if (this.#isUserInBody) {
      this.#use(await users.know(this.#key, request, received.plain));
      if (this.#isLimited) this.#openTurn();
    }
    if (allowed !== null) this.#rewriters = rewriting.named;
    if (this.#limitsTokens) this.#rewriters = rewriting.limited;
    const { mayAsk, asking, unasked } = this.#rewriters;
    const [backend, other] = names.catalog.backends;
    // With a choice, this is known only once that is made.
    const isRefused = mayAsk && other === undefined && habitsOf(backend?.name ?? "").refusesOptions(this.#endpoint);
    if (rewriting.goesByClient) {
      this.#client = {
        userAgent: request.headers.get("user-agent"),
        enginesOf: engines.enginesOf,
        priority: this.#priority,
        saltOf: (shares, name) => this.#deps.saltOf(`${this.#sharesCacheAs(shares)} ${name}`),
      };
    }
    await this.#rewrite(isRefused ? unasked : asking);
    const { model, target, notAllowed } = this.#rewritten;
    const tracker = this.#tracker;
    tracker.isReceived = true;
    tracker.record.requestClass = classOfBody(received.plain, this.#program) ?? tracker.record.requestClass;
    tracker.record.modelAsked = model?.asked;
    tracker.record.modelSent = model?.sent;
    tracker.record.model = model?.name;
    const found =
      (this.#limitsTokens ? notAllowed.tokens : undefined) ?? (allowed === null ? undefined : notAllowed.models);
    if (found !== undefined) throw memberNotAllowed(found);
    if (allowed !== null) {
      const inQuery = new URL(request.url).searchParams.getAll("model");
      requireAllowedModel(allowed, { path: this.#path, inQuery, model, hasBody: hasBody(received) });
    }
    if (model !== undefined && target.candidates.length === 0) {
      throw modelNotFound(model.asked, listModelNames(names).filter(this.#mayUse));
    }
  }

  /** @throws ProxyError if the rules could not read in the body what the backend may */
  async #rewrite(rewrite: RewriteRequest) {
    const { came, plain, mayEdit, mustBeObject, formModel } = this.#received;
    const { unread, names } = this.#rewriting;
    let rewritten = unread;
    if (formModel !== undefined) {
      const target = resolveModel(formModel, names);
      rewritten = { ...unread, target, model: { asked: formModel, sent: formModel, name: target.name } };
    }
    if (plain !== undefined) {
      const read = await rewrite(this.#path, plain, this.#client, this.#key.id);
      if ("refused" in read) throw new ProxyError("invalid_json");
      if (mustBeObject && !read.isObject && hasBody(this.#received)) throw new ProxyError("unsupported_body");
      rewritten = mayEdit ? read : { ...unread, isStored: read.isStored };
    }
    this.#rewritten = rewritten;
    this.#tracker.record.changes = rewritten.changes;
    this.#pieces = rewritten.pieces ?? (came instanceof Uint8Array ? [came] : undefined);
  }

  /** Which backends may get it, and what else than their answer its client gets. @throws ProxyError as `StoredIds.find` */
  async #choose() {
    const { storedIds, wall } = this.#deps;
    const [method, path, endpoint, rewritten] = [this.#method, this.#path, this.#endpoint, this.#rewritten];
    const { catalog } = this.#rewriting.names;
    if (endpoint.folder === "models") {
      const isLimited = (this.#key.rules?.allowed_models ?? null) !== null;
      const asked = { method, pathAndQuery: this.#pathAndQuery, models: catalog, wall };
      this.#modelList = resolveModelList(asked, isLimited ? this.#mayUse : undefined);
    }
    if (rewritten.stream && method === "POST" && this.#modelList === undefined) this.#wait?.begin();
    // Batches of messages, but not `/v1/messages` itself.
    if (endpoint.refers || (endpoint.folder === "messages" && endpoint.turns === undefined)) {
      const naming = { keyId: this.#key.id, method, path, body: this.#received.plain, keeps: rewritten.isStored };
      const askLimits = async (): Promise<void> => this.#turn?.askEarly("look-up");
      this.#found = await storedIds.find(naming, catalog.backends, askLimits);
    }
    const backend = this.#found?.backend;
    this.#candidates = backend === undefined ? rewritten.target.candidates : [backend];
  }

  /** Waits until the limits of the key admit it, and for a place at a backend. @throws as `Wait.enter` */
  async #admit() {
    const { queue } = this.#deps;
    const [tracker, rewritten, body, keyId] = [this.#tracker, this.#rewritten, this.#received.plain, this.#key.id];
    if (this.#limitsTokens) this.#reservation = await reservationFor(this.#received, rewritten, keyId);
    this.#hasPlace = queue.hasPlaces || this.#rewriting.names.catalog.backends.length > 1;
    const turn = this.#turn ?? (this.#hasPlace ? this.#openTurn() : undefined);
    if (turn === undefined) return;
    const { opening, changes, model, target } = rewritten;
    const { privateCache } = target.rules;
    const conversation =
      body !== undefined && opening !== undefined
        ? conversationOf(
            this.#request.headers,
            keyId,
            body,
            opening,
            changes,
            privateCache && this.#sharesCacheAs(privateCache),
          )
        : noConversation;
    tracker.record.conversation = conversation.trace?.thread;
    const candidates = this.#candidates;
    const priority = rewritten.isFlex === true ? "low" : this.#priority;
    tracker.record.priority = priority;
    const destination = { model: model?.name, candidates, characters: body?.length ?? 0, conversation, priority };
    await turn.enter(destination, this.#reservation);
  }

  /** Who shares a cache: a key without a team has its own. */
  #sharesCacheAs(shares: "team" | "key") {
    const { id, teamId } = this.#key;
    return shares === "team" && teamId !== undefined ? `team ${teamId}` : `key ${id}`;
  }

  /** What it holds is given back when the request is over, whatever ends that. */
  #openTurn() {
    const { id: keyId, teamId, userId } = this.#key;
    const [subjects, path, { startedAt }] = [this.#subjects, this.#path, this.#tracker];
    const client = this.#request.signal;
    const priority = this.#priority;
    const turn = new Wait({ keyId, teamId, userId, subjects, path, startedAt, client, priority }, this.#deps.queue);
    this.#turn = turn;
    this.#tracker.turn = turn;
    this.#tracker.onEndRequested(turn.end);
    return turn;
  }

  /**
   * Sends the request to its backend, and once more if that refuses the `stream_options` that we added: nothing was generated.
   * @throws AbortReason if no response head comes
   */
  async #send() {
    const { habitsOf, wall } = this.#deps;
    const tracker = this.#tracker;
    const route = this.#hasPlace ? this.#turn : undefined;
    // With a choice, it is known only now.
    if (route !== undefined && this.#asksForUsage() && habitsOf(route.backend).refusesOptions(this.#endpoint)) {
      await this.#rewrite(this.#rewriters.unasked);
    }
    const sendAnywhere =
      route &&
      sendWithFailover({
        tracker,
        route,
        backends: () => this.#backendsNow(),
        hasModel: this.#endpoint.takesJson && this.#rewritten.target.model !== undefined && !this.#found?.refers,
        client: this.#request.signal,
        canOpenAgain: () => this.#canOpenAgain(),
        sendOnce: (backend) => this.#sendOnce(backend),
        wall,
      });
    for (let isAgain = false; ; isAgain = true) {
      // Without a place, no other backend may get it.
      const upstream = await (sendAnywhere?.() ?? this.#sendOnce(this.#backendsNow()[0]));
      const { status, ok } = upstream.response;
      // An error that only quotes the body would be the same again.
      if (isAgain && ok) habitsOf(tracker.record.backend ?? "").learnRefusal(this.#endpoint);
      if ((status !== 400 && status !== 422) || !this.#asksForUsage()) return upstream;

      const body = await readOrRelease(upstream, maxRefusalBytes);
      const isAboutOptions =
        body instanceof Uint8Array && Buffer.from(body.buffer, body.byteOffset, body.length).includes("stream_options");
      if (!isAboutOptions) return readAlready(upstream, body);
      upstream.release();
      await this.#rewrite(this.#rewriters.unasked);
    }
  }

  #asksForUsage() {
    return this.#rewritten.changes?.kinds.includes("stream_usage") === true;
  }

  /** A stream that comes from the client can be sent for as long as nothing of it was read. */
  #canOpenAgain() {
    const { came } = this.#received;
    return this.#pieces !== undefined || !(came instanceof ReadableStream) || !came.locked;
  }

  /**
   * A place is one at a backend as the catalog in use has it: a request that waited for it, perhaps since that backend went
   * away, goes to its new address. Not if the body has a name of the model that no longer holds.
   */
  #backendsNow(): readonly Backend[] {
    const [begun, inUse] = [this.#rewriting.names.catalog, this.#deps.rewriting.latest.names.catalog];
    if (inUse === begun) return begun.backends;
    const { model } = this.#rewritten.target;
    const sameModel = inUse.models.find(({ name }) => name === model?.name);
    if (sameModel?.servedAs !== model?.servedAs) return begun.backends;
    return begun.backends.map((backend) => inUse.backends.find(({ name }) => name === backend.name) ?? backend);
  }

  /** A client that leaves before the head is charged the estimated input: the backend has read it, or is about to. */
  async #sendOnce(backend: Backend | undefined) {
    if (backend === undefined) throw new Error("There is no backend.");
    const { config, forwards, log } = this.#deps;
    const { streamReadTimeoutMs, nonStreamReadTimeoutMs } = config.upstream;
    const [tracker, request, key] = [this.#tracker, this.#request, this.#key];
    const { came, plain, isEncoded, mustBeObject } = this.#received;
    const { stream, pieces } = this.#rewritten;
    const readTimeoutMs = stream ? streamReadTimeoutMs : nonStreamReadTimeoutMs;
    const usersFrom = key.rules?.users_from ?? null;
    const held = this.#pieces && outgoingBodyOf(this.#pieces);
    this.#backend = backend;
    tracker.upstreamRequestSent(backend.name);
    tracker.sends += 1;
    try {
      const upstream = await forwards.get(backend)({
        keyId: key.id,
        userId: key.userId,
        startedAt: tracker.startedAt,
        method: this.#method,
        pathAndQuery: this.#modelList?.pathAndQuery ?? this.#pathAndQuery,
        headers: upstreamRequestHeaders(request.headers, {
          contentLength: held?.length,
          isDecoded: isEncoded && (pieces !== undefined || plain === came),
          mustBeObject,
          peerAddress: this.#peerAddress,
          upstreamApiKey: backend.apiKey,
          requestId: tracker.record.requestId,
          isOfUser: usersFrom === null ? undefined : userHeadersOf(usersFrom),
        }),
        body: held === undefined ? came : held.body,
        readTimeoutMs,
        onLook: () => {
          if (!tracker.lacksContent(3 * readTimeoutMs)) return;
          const { requestId } = tracker.record;
          log.warn("Stream has had only heartbeats for three timeouts", { requestId, backend: backend.name });
        },
        client: request.signal,
        onReceived: tracker.bodyReceived,
        onStarted: tracker.onEndRequested,
      });
      tracker.upstreamResponded();
      return upstream;
    } catch (error) {
      if (error instanceof AbortReason && error.isUnsent) tracker.sends -= 1;
      if (error instanceof AbortReason && error.outcome === "client_left") await this.#chargeInput();
      throw error;
    }
  }

  async #chargeInput() {
    const { record, wall } = this.#deps;
    if (this.#reservation === undefined || !mayGenerate(this.#method, this.#path)) return;
    const { inputTokens: estimatedTokens } = this.#reservation;
    this.#tracker.record.estimatedTokens = estimatedTokens;
    const admission = this.#turn?.admission;
    const { id: keyId, teamId, userId } = this.#key;
    await record(chargeEvent({ keyId, teamId, userId, closedAt: wall() }, { estimatedTokens, admission }));
  }

  /** The backend's response, metered. @throws as `ClientResponse.make` */
  async #answer(given: UpstreamResponse) {
    const { rewriting, storedIds, habitsOf, record, wall, sseKeepaliveMs, config } = this.#deps;
    const [tracker, endpoint, found] = [this.#tracker, this.#endpoint, this.#found];
    const { stream, usageAdded, asksForUsage, marksFullContext } = this.#rewritten;
    const onFullContext = marksFullContext === true ? () => this.#noteFullContext() : undefined;
    const sent = onFullContext === undefined ? given : await markRefusal(given, onFullContext);
    const { headers } = sent.response;
    tracker.record.streamed = mediaTypeOf(headers.get("content-type")).isEventStream;
    if (this.#rewriters.mayAsk) rewriting.learnServer(tracker.record.backend ?? "", headers.get("server"));
    const backend = this.#rewriting.names.catalog.backends.length > 1 ? tracker.record.backend : undefined;
    const { upstream, created }: Announced =
      found === undefined ? { upstream: sent } : await storedIds.announce(sent, found, backend);
    const { headSent = false, silentMs = 0 } = this.#wait?.end() ?? {};
    const habits = habitsOf(tracker.record.backend ?? "");
    // A stream that was asked for nothing tells what its backend sends unasked.
    const tells = stream && !asksForUsage && usageAdded === noUsageAdded && endpoint.streamOptions;
    const responding = {
      upstream: headSent ? await asEventStream(upstream, this.#path) : upstream,
      silentMs,
      tracker,
      keyId: this.#key.id,
      method: this.#method,
      path: this.#path,
      admission: this.#turn?.admission,
      reservation: this.#reservation,
      usageAdded,
      keepsUsage: usageAdded.includeUsage && habits.sendsUnasked(endpoint),
      learning: tells ? { habits, endpoint } : undefined,
      cachedInInput: this.#backend?.cachedInInput,
      modelList: this.#modelList,
      readId: found && readIdOf(found),
      onFullContext,
      created,
    };
    const deps = { record, wall, sseKeepaliveMs, sharesOrigin: config.sharesOrigin };
    return new ClientResponse(responding, deps).make();
  }

  #noteFullContext() {
    const { kinds = [], maxTokens } = this.#tracker.record.changes ?? {};
    this.#tracker.record.changes = { kinds: [...kinds, "full_context_code"], maxTokens };
  }

  /** Ends a request that we respond to ourselves. */
  #complete(response: Response) {
    this.#tracker.record.status = response.status;
    this.#tracker.finish("completed");
    return response;
  }

  /** @param left what the limits leave; absent: as they have answered */
  #fail(error: unknown, left = this.#limitHeaders()) {
    const tracker = this.#tracker;
    const { code, outcome, cause, details } = classifyFailure(error, this.#request.signal);
    if (code === "internal") this.#deps.log.error("Request failed inside Tollgate", { error: stackOf(error) });
    const isMessages = isMessagesPath(this.#pathAndQuery);
    const { contact } = this.#deps.config;
    const response = failureResponse(code, details, {
      requestId: isMessages ? tracker.record.requestId : undefined,
      contact,
    });
    tracker.record.status = response.status;
    tracker.finish(outcome, { code, cause, message: outcome === "limited" ? details?.message : undefined });
    return this.#withOurHeaders(response, left);
  }

  /** What its limits leave, as they have answered; undefined: they have not. */
  #limitHeaders() {
    const [subjects, admission] = [this.#subjects, this.#turn?.admission];
    return subjects && admission && rateLimitHeaders(subjects, admission.used, this.#deps.wall(), this.#codex);
  }

  /** @param isFinal it is known where the request went, and what became of it */
  #withOurHeaders(response: Response, left = this.#limitHeaders(), isFinal = true) {
    const { headers } = response;
    const { corsOrigins } = this.#deps.config;
    if (isFinal && this.#request.headers.get("x-tollgate-debug") === "1") addDebugHeaders(headers, this.#tracker);
    // Anthropic's SDKs read the second.
    for (const name of ["x-request-id", "request-id"]) headers.set(name, this.#tracker.record.requestId);
    if (left !== undefined) setLimitHeaders(headers, left);
    if (corsOrigins !== undefined) applyCors(headers, this.#request, corsOrigins);
    return response;
  }
}

const stackOf = (error: unknown): string | undefined => (error instanceof Error ? error.stack : String(error));

/** What `User-Agent` begins with, such as `OpenAI/Python` or `Codex Desktop/0.171.0`: names may have blanks. */
const clientProgramForm = /^(?:[\w.-]+ ){0,3}[^\s/(]+\/\S+|^\S+/;

/** W3C Trace Context, section 3.2.2; a later version may have more behind it. An id of zeros is none. */
const traceForm = /^[\da-f]{2}-(?!0{32})([\da-f]{32})-[\da-f]{16}-/;

/** The client's `X-Request-Id`. Any other gets a new one: these sort by time, so an index of them grows at its end only. */
const requestIdForm = /^[\x21-\x7e]{1,128}$/;
