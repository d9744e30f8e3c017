import { ProxyError } from "../errors.ts";
import { type Admission, isWorthWaiting, lacksPlace } from "../../domain/admissions.ts";
import type { BackendSign, Choice } from "../../domain/backends.ts";
import { createBackoff } from "../../time/backoff.ts";
import { wait } from "../../time/wait.ts";
import { createLimitWaits, type LimitWaits, type LimitWaitsOptions, type RequestOfKey } from "./limit-waits.ts";
import {
  createPatience,
  createWaitingList,
  type ListedRequest,
  type OnWaiting,
  type Patience,
  type PatienceOptions,
  type Waiting,
  type WaitingList,
  type WaitingListOptions,
} from "./waiting-list.ts";

export interface RequestToQueue extends ListedRequest {
  /** Asks the limits of its key; undefined if it has none. */
  limits: Limits | undefined;
}

export interface Limits extends Omit<RequestOfKey, "keyId"> {
  /** What they gave the request before its body was read; the next `ask` has it. */
  early: Admission | undefined;
}

/** What a request has that may be sent to a backend, unless the limits of its key refuse it. */
export interface Turn extends Readonly<Choice> {
  /** Undefined for a key without limits. */
  admission: Admission | undefined;
  /** Tells those who choose of the backend that it was sent to; each kind at most once for each send. */
  report(sign: BackendSign): void;
  /**
   * Gives up the place, and takes one at another candidate; the turn then names that one. Where it was sent nowhere, it
   * waits for that, and may return to one that it has been at, unless none is in and requests do not wait for backends.
   * @returns undefined if there is none: the request has no place then, and ends with what it has
   * @throws ProxyError if it has waited too long for a backend; AbortReason if it ends while it waits for the place
   */
  moveOn(): Promise<Choice | undefined>;
  /** Gives back what it has. See `Places`. */
  leave(cachedShare?: number): void;
}

export interface RequestQueue {
  /** Whether requests of keys without limits need a turn: they may have to wait, or there is a choice. */
  hasPlaces: boolean;
  /**
   * Waits until the limits of the key admit the request, and for a place at a backend.
   * @param onWaiting called with what ends the wait
   * @throws ProxyError if too many wait, or no place is free in time; AbortReason if the request ends otherwise
   */
  enter(request: RequestToQueue, onWaiting: OnWaiting): Promise<Turn>;
  depth(): { waiting: number; running: number };
}

export interface RequestQueueOptions extends WaitingListOptions, LimitWaitsOptions, Omit<PatienceOptions, "places"> {
  hasPlaces: boolean;
}

/** A request on its way to its turn. */
interface Entering {
  request: RequestToQueue;
  needsPlace: boolean;
  /** How the limits answered; undefined: they are not asked yet, or the key has none. */
  admission: Admission | undefined;
}

export function createRequestQueue(options: RequestQueueOptions): RequestQueue {
  const { timeoutMs } = options;
  const list = createWaitingList(options);
  const limitWaits = createLimitWaits(options);
  const turns = createTurns({ ...options, list, limitWaits });

  async function waitForTurn(entering: Entering, one: Waiting, onWaiting: OnWaiting): Promise<Turn> {
    const { request, needsPlace } = entering;
    const { keyId, limits, candidates } = request;
    const patience = createPatience(candidates, options);
    const giveBackAdmission = (): void => {
      entering.admission?.cancel();
      entering.admission = undefined;
    };
    for (;;) {
      if (limits !== undefined && !isAdmitted(entering.admission)) {
        entering.admission =
          needsPlace && mustWaitForBackend(options, candidates)
            ? undefined
            : await waitForLimits(limitWaits, one, { keyId, ...limits }, entering.admission);
      }
      if (!needsPlace || entering.admission?.refusedBy !== undefined) {
        one.leave();
        return turns.open(request, entering.admission);
      }
      const choice = await one.enterForPlace([], patience, giveBackAdmission);
      if (limits !== undefined && entering.admission === undefined)
        entering.admission = await limits.ask(timeoutMs > 0);
      const { admission } = entering;
      if (admission?.refusedBy === undefined)
        return turns.open(request, admission, { one, choice, onWaiting, patience });
      one.leave();
      if (timeoutMs === 0 || !isWorthWaiting(admission)) return turns.open(request, admission);
    }
  }

  const queue: RequestQueue = {
    hasPlaces: options.hasPlaces,
    async enter(request, onWaiting) {
      const { keyId, limits, candidates } = request;
      const needsPlace = queue.hasPlaces && candidates.length > 0;
      const isBehind =
        limits?.early === undefined && limits !== undefined && limitWaits.isWaiting(keyId, limits.maxConcurrency);
      const mayAsk = !(needsPlace && mustWaitForBackend(options, candidates));
      if (!mayAsk) limits?.early?.cancel();
      const asksNow = mayAsk && !isBehind;
      const admission = asksNow ? await limits?.ask(timeoutMs > 0) : undefined;
      const entering: Entering = { request, needsPlace, admission };
      const mustWait =
        admission?.refusedBy === undefined ? isBehind || needsPlace : timeoutMs > 0 && isWorthWaiting(admission);
      if (!mustWait) return turns.open(request, admission);
      return list.during(request, onWaiting, async (one) => {
        try {
          if (one.gone.aborted) await one.ended;
          return await waitForTurn(entering, one, onWaiting);
        } catch (error) {
          cancelAdmitted(entering.admission);
          throw error;
        }
      });
    },
    depth: () => ({ waiting: list.size(), running: turns.running() }),
  };
  return queue;
}

async function waitForLimits(
  limitWaits: LimitWaits,
  one: Waiting,
  request: RequestOfKey,
  refused: Admission | undefined,
): Promise<Admission> {
  try {
    await one.enterForLimits();
  } catch (error) {
    if (!isForWindow(refused) || !isFull(error)) throw error;
    return request.ask(false);
  }
  const decided = limitWaits.wait(request, refused, one.gone);
  try {
    return await Promise.race([decided, one.ended]);
  } catch (error) {
    // It may have been admitted at the same moment.
    void decided.then(cancelAdmitted, () => {});
    throw error;
  }
}

/** Until one is back, no limits are asked, or asked again: what waits for it takes nothing from its key. */
const mustWaitForBackend = (
  { places, backendWaitMs }: Pick<RequestQueueOptions, "places" | "backendWaitMs">,
  candidates: readonly string[],
): boolean => backendWaitMs > 0 && !places.isAnyIn(candidates);

const isAdmitted = (admission: Admission | undefined): boolean =>
  admission !== undefined && admission.refusedBy === undefined;

function cancelAdmitted(admission: Admission | undefined): void {
  if (isAdmitted(admission)) admission?.cancel();
}

/** Such a refusal tells its client more than a full list does. */
const isForWindow = (refused: Admission | undefined): boolean => refused !== undefined && !lacksPlace(refused);

const isFull = (error: unknown): boolean => error instanceof ProxyError && error.code === "queue_full";

/** A place at a backend. */
interface Taken {
  one: Waiting;
  choice: Choice;
  onWaiting: OnWaiting;
  patience: Patience;
}

interface TurnsOptions extends RequestQueueOptions {
  list: WaitingList;
  limitWaits: LimitWaits;
}

/** A request that finds no other backend connects so often at once: by then a probe has told whether that is up. */
const maxHasty = 2;
/** Between two further connections: a backend whose probes are responded to may refuse requests. */
const [firstPauseMs, longestPauseMs] = [100, 5000];

function createTurns(options: TurnsOptions) {
  const { limitWaits, timeoutMs, monotonic } = options;
  let running = 0;

  function refused({ keyId }: RequestToQueue, admission: Admission): Admission {
    // A place becomes free when a request of the key ends: none did while this one waited.
    const placeWaitMs = limitWaits.durationOf(keyId) ?? Math.max(admission.waitMs, timeoutMs);
    return { ...admission, waitMs: lacksPlace(admission) ? placeWaitMs : admission.waitMs };
  }

  return {
    /** @param taken undefined if it needs no place, or is refused */
    open(request: RequestToQueue, admission: Admission | undefined, taken?: Taken): Turn {
      const { keyId, limits, candidates } = request;
      const route = taken === undefined ? noRoute : createRoute(request, taken, options);
      const turn = { backend: candidates[0] ?? "", reason: "only" as const, ...taken?.choice };
      const place = {
        report: route.report,
        async moveOn() {
          const choice = await route.moveOn();
          return choice && Object.assign(turn, { expectation: undefined, lastTurn: undefined, ...choice });
        },
      };
      if (admission !== undefined && (admission.refusedBy !== undefined || candidates.length === 0))
        return Object.assign(turn, place, { admission: refused(request, admission), leave() {} });
      const since = monotonic();
      running += 1;
      return Object.assign(turn, place, {
        admission,
        leave(cachedShare?: number) {
          running -= 1;
          admission?.end();
          route.leave(cachedShare);
          if (limits !== undefined) limitWaits.ended(keyId, monotonic() - since);
        },
      });
    },
    running: () => running,
  };
}

type Route = Pick<Turn, "leave" | "report" | "moveOn">;

/** The route of a request that has no place, because there is one backend and no choice. */
const noRoute: Route = { leave() {}, report() {}, moveOn: async () => undefined };

/** From place to place. */
function createRoute(request: RequestToQueue, taken: Taken, options: TurnsOptions): Route {
  const { list, places, timeoutMs, backendWaitMs, monotonic } = options;
  const pauses = createBackoff(firstPauseMs, longestPauseMs);
  let at: Taken | undefined = taken;
  let tried: readonly string[] = [];
  let wasRefused = false;
  let returns = 0;
  /** A backend that is in while it takes no connection would have it return for ever. */
  let returnsUntil: number | undefined;

  function leave(cachedShare?: number): void {
    at?.one.leave(cachedShare);
    at = undefined;
  }

  return {
    leave,
    report(sign) {
      wasRefused ||= sign.kind === "busy" || sign.kind === "failed";
      at?.one.report(sign);
    },
    async moveOn() {
      if (at === undefined) return undefined;
      const { onWaiting, patience, choice: left } = at;
      leave();
      const hasReturned = tried.includes(left.backend);
      if (!hasReturned) tried = [...tried, left.backend];
      const hasOther = places.isAnyIn(request.candidates.filter((name) => !tried.includes(name)));
      const returnsNow = !wasRefused && (hasReturned || !hasOther);
      if (returnsNow) {
        returnsUntil ??= monotonic() + (hasOther ? timeoutMs : backendWaitMs);
        if (monotonic() >= returnsUntil) return undefined;
        returns += 1;
      }
      try {
        return await list.during(request, onWaiting, async (one) => {
          if (returnsNow && returns > maxHasty) await Promise.race([wait(pauses.next(), one.gone), one.ended]);
          // What a backend was too busy for does not wait for another one: its client is told so at once.
          const choice = await one.enterForPlace(tried, wasRefused ? undefined : patience);
          at = { one, choice, onWaiting, patience };
          return choice;
        });
      } catch (error) {
        // What it has heard says more.
        if (error instanceof ProxyError && error.code !== "backend_unavailable") return undefined;
        throw error;
      }
    },
  };
}
