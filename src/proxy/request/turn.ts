import { ProxyError } from "../errors.ts";
import { type Admission, isRefused, lacksPlace, type Places } from "../../domain/admissions.ts";
import type { BackendSign, Choice } from "../../domain/backends.ts";
import { createBackoff } from "../../time/backoff.ts";
import type { MonotonicClock } from "../../time/clock.ts";
import { wait } from "../../time/wait.ts";
import type { LimitWaits, RequestOfKey } from "./limit-waits.ts";
import type { ListedRequest, OnWaiting, Patience, Waiting, WaitingList } from "./waiting-list.ts";

export interface RequestToQueue extends ListedRequest {
  /** Asks the limits of its key; undefined if it has none. */
  limits: Omit<RequestOfKey, "keyId"> | undefined;
}

/** What a request has that may be sent to a backend, unless the limits of its key refuse it. */
export interface Turn extends Readonly<Choice> {
  /** Undefined for a key without limits. */
  admission: Admission | undefined;
  /** Tells those who choose of the backend that it was sent to; each kind at most once for each send. */
  report(sign: BackendSign): void;
  /**
   * Gives up the place, and takes one at another candidate that it has not been at; the turn then names that one. Where no
   * connection was made, none of them is in, and requests wait for backends, it may be one that it has been at.
   * @returns undefined if there is none: the request has no place then, and ends with what it has
   * @throws ProxyError if it has waited too long for a backend; AbortReason if it ends while it waits for the place
   */
  moveOn(): Promise<Choice | undefined>;
  /** Gives back what it has. */
  leave(): void;
}

/** A place at a backend. */
interface Taken {
  one: Waiting;
  choice: Choice;
  onWaiting: OnWaiting;
  patience: Patience;
}

export interface Turns {
  /** @param taken undefined if it needs no place, or is refused */
  open(request: RequestToQueue, admission: Admission | undefined, taken?: Taken): Turn;
  running(): number;
}

export interface TurnsOptions {
  list: WaitingList;
  limitWaits: LimitWaits;
  places: Pick<Places, "isAnyIn">;
  timeoutMs: number;
  backendWaitMs: number;
  monotonic: MonotonicClock;
}

/** A request that finds no other backend connects so often at once: by then a probe has told whether that is up. */
const maxHasty = 2;
/** Between two further connections: a backend whose probes are responded to may refuse requests. */
const [firstPauseMs, longestPauseMs] = [100, 5000];

export function createTurns(options: TurnsOptions): Turns {
  const { limitWaits, timeoutMs, monotonic } = options;
  let running = 0;

  function refused({ keyId }: RequestToQueue, admission: Admission): Admission {
    // A place becomes free when a request of the key ends: none did while this one waited.
    const placeWaitMs = limitWaits.durationOf(keyId) ?? Math.max(admission.waitMs, timeoutMs);
    return { ...admission, waitMs: lacksPlace(admission) ? placeWaitMs : admission.waitMs };
  }

  return {
    open(request, admission, taken) {
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
      if (admission !== undefined && isRefused(admission))
        return Object.assign(turn, place, { admission: refused(request, admission), leave() {} });
      const since = monotonic();
      running += 1;
      return Object.assign(turn, place, {
        admission,
        leave() {
          running -= 1;
          admission?.end();
          route.leave();
          if (limits !== undefined) limitWaits.ended(keyId, monotonic() - since);
        },
      });
    },
    running: () => running,
  };
}

/** What a backend was too busy for does not wait for another one: its client is told so at once. */
const noPatience: Patience = {
  begin(end) {
    end(new ProxyError("queue_timeout"));
    return () => {};
  },
};

type Route = Pick<Turn, "leave" | "report" | "moveOn">;

/** Of a request that has no place, because there is one backend and no choice. */
const noRoute: Route = { leave() {}, report() {}, moveOn: async () => undefined };

/** From place to place. */
function createRoute(request: RequestToQueue, taken: Taken, { list, places, backendWaitMs }: TurnsOptions): Route {
  const pauses = createBackoff(firstPauseMs, longestPauseMs);
  let at: Taken | undefined = taken;
  let tried: readonly string[] = [];
  let wasSent = true;
  let returns = 0;

  function leave(): void {
    at?.one.leave();
    at = undefined;
  }

  return {
    leave,
    report(sign) {
      wasSent = sign.kind !== "unreachable";
      at?.one.report(sign);
    },
    async moveOn() {
      if (at === undefined) return undefined;
      const { onWaiting, patience, choice: left } = at;
      leave();
      tried = [...tried, left.backend];
      const hasOther = places.isAnyIn(request.candidates.filter((name) => !tried.includes(name)));
      if (!hasOther && (wasSent || backendWaitMs === 0)) return undefined;
      if (!hasOther) tried = [];
      if (!hasOther) returns += 1;
      try {
        return await list.during(request, onWaiting, async (one) => {
          if (returns > maxHasty) await Promise.race([wait(pauses.next(), one.gone), one.ended]);
          const choice = await one.enterForPlace(tried, wasSent ? noPatience : patience);
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
