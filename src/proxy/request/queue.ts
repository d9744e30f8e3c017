import { ProxyError } from "../errors.ts";
import { type Admission, isWorthWaiting, lacksPlace } from "../../domain/admissions.ts";
import type { MonotonicClock } from "../../time/clock.ts";
import { createLimitWaits, type RequestOfKey } from "./limit-waits.ts";
import {
  createWaitingList,
  type EndWait,
  type ListedRequest,
  type Waiting,
  type WaitingListOptions,
} from "./waiting-list.ts";

export interface RequestToQueue extends ListedRequest {
  /** Asks the limits of its key; undefined if it has none. */
  limits: Omit<RequestOfKey, "keyId"> | undefined;
}

/** What a request has that may be sent to the backend, unless the limits of its key refuse it. */
export interface Turn {
  /** Undefined for a key without limits. */
  admission: Admission | undefined;
  /** Gives back what it has. */
  leave(): void;
}

export interface RequestQueue {
  /** Whether requests of keys without limits may have to wait. */
  hasPlaces: boolean;
  /**
   * Waits until the limits of the key admit the request, and for a place at the backend.
   * @param onWaiting called with what ends the wait
   * @throws ProxyError if too many wait, or the backend has no place in time; AbortReason if the request ends otherwise
   */
  enter(request: RequestToQueue, onWaiting: (end: EndWait) => void): Promise<Turn>;
  depth(): { waiting: number; running: number };
}

export interface RequestQueueOptions extends WaitingListOptions {
  /** The backend gets only so many requests at once. */
  hasPlaces: boolean;
  /** How long a request waits in all; 0: nothing waits. */
  timeoutMs: number;
  monotonic: MonotonicClock;
}

export function createRequestQueue(options: RequestQueueOptions): RequestQueue {
  const { hasPlaces, timeoutMs, monotonic } = options;
  const list = createWaitingList(options);
  const limitWaits = createLimitWaits({ monotonic, timeoutMs });
  let running = 0;

  async function waitForLimits(one: Waiting, request: RequestOfKey, refused: Admission | undefined) {
    try {
      await one.enter("limits");
    } catch (error) {
      if (!isForWindow(refused) || !isFull(error)) throw error;
      return request.ask(false);
    }
    const admission = await Promise.race([limitWaits.wait(request, refused, one.gone), one.ended]);
    if (!hasPlaces || isRefused(admission)) one.leave();
    return admission;
  }

  /** @param first how the limits answered, unless others of the key were waiting */
  async function waitForTurn({ keyId, limits }: RequestToQueue, first: Admission | undefined, one: Waiting) {
    const deadline = monotonic() + timeoutMs;
    let admission = first;
    try {
      if (one.gone.aborted) await one.ended;
      if (limits !== undefined && (first === undefined || isRefused(first)))
        admission = await waitForLimits(one, { keyId, ...limits }, first);
      if (hasPlaces && admission?.refusedBy === undefined)
        await waitForPlace(one, timeoutMs === 0 ? undefined : deadline - monotonic());
    } catch (error) {
      if (admission !== undefined && !isRefused(admission)) admission.cancel();
      throw error;
    }
    return turnOf({ keyId, limits }, admission, hasPlaces ? one.leave : undefined);
  }

  function turnOf(
    { keyId, limits }: Pick<RequestToQueue, "keyId" | "limits">,
    admission: Admission | undefined,
    leavePlace?: () => void,
  ): Turn {
    if (admission !== undefined && isRefused(admission)) {
      // A place becomes free when a request of the key ends: none did while this one waited.
      const placeWaitMs = limitWaits.durationOf(keyId) ?? Math.max(admission.waitMs, timeoutMs);
      const waitMs = lacksPlace(admission) ? placeWaitMs : admission.waitMs;
      return { admission: { ...admission, waitMs }, leave() {} };
    }
    const since = monotonic();
    running += 1;
    return {
      admission,
      leave() {
        running -= 1;
        admission?.end();
        leavePlace?.();
        if (limits !== undefined) limitWaits.ended(keyId, monotonic() - since);
      },
    };
  }

  return {
    hasPlaces,
    async enter(request, onWaiting) {
      const { keyId, limits } = request;
      const isBehind = limits !== undefined && limitWaits.isWaiting(keyId, limits.places);
      const first = isBehind ? undefined : await limits?.ask(timeoutMs > 0);
      const mustWait =
        first !== undefined && isRefused(first) ? timeoutMs > 0 && isWorthWaiting(first) : isBehind || hasPlaces;
      if (!mustWait) return turnOf(request, first);
      return list.during(request, onWaiting, (one) => waitForTurn(request, first, one));
    },
    depth: () => ({ waiting: list.size(), running }),
  };
}

/** @param leftMs undefined: it has a place at once, or is refused */
async function waitForPlace(one: Waiting, leftMs: number | undefined): Promise<void> {
  const tooLate = (): void => one.end(new ProxyError("queue_timeout"));
  const timer = leftMs === undefined ? undefined : setTimeout(tooLate, Math.max(0, leftMs));
  try {
    await one.enter("place");
  } finally {
    clearTimeout(timer);
  }
}

/** Of such a refusal its client learns more than of a full list. */
const isForWindow = (refused: Admission | undefined): boolean => refused !== undefined && !lacksPlace(refused);

const isFull = (error: unknown): boolean => error instanceof ProxyError && error.code === "queue_full";

const isRefused = ({ refusedBy }: Admission): boolean => refusedBy !== undefined;
