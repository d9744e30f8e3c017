import { ProxyError } from "../errors.ts";
import { type Admission, isRefused, isWorthWaiting, lacksPlace } from "../../domain/admissions.ts";
import { createLimitWaits, type RequestOfKey } from "./limit-waits.ts";
import { createPatience, type PatienceOptions } from "./patience.ts";
import { createTurns, type RequestToQueue, type Turn } from "./turn.ts";
import { createWaitingList, type OnWaiting, type Waiting, type WaitingListOptions } from "./waiting-list.ts";

export type { RequestToQueue, Turn };

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

export interface RequestQueueOptions extends WaitingListOptions, Omit<PatienceOptions, "places"> {
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
  const { timeoutMs, monotonic } = options;
  const list = createWaitingList(options);
  const limitWaits = createLimitWaits({ monotonic, timeoutMs });
  const turns = createTurns({ ...options, list, limitWaits });

  async function waitForLimits(
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
    return Promise.race([limitWaits.wait(request, refused, one.gone), one.ended]);
  }

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
            : await waitForLimits(one, { keyId, ...limits }, entering.admission);
      }
      if (!needsPlace || (entering.admission !== undefined && isRefused(entering.admission))) {
        one.leave();
        return turns.open(request, entering.admission);
      }
      const choice = await one.enterForPlace([], patience, giveBackAdmission);
      if (limits !== undefined && entering.admission === undefined)
        entering.admission = await limits.ask(timeoutMs > 0);
      const { admission } = entering;
      if (admission === undefined || !isRefused(admission))
        return turns.open(request, admission, { one, choice, onWaiting, patience });
      one.leave();
      if (timeoutMs === 0 || !isWorthWaiting(admission)) return turns.open(request, admission);
    }
  }

  const queue: RequestQueue = {
    hasPlaces: options.hasPlaces,
    async enter(request, onWaiting) {
      const { keyId, limits, candidates } = request;
      const needsPlace = queue.hasPlaces;
      const isBehind = limits !== undefined && limitWaits.isWaiting(keyId, limits.places);
      const asksNow = !isBehind && !(needsPlace && mustWaitForBackend(options, candidates));
      const admission = asksNow ? await limits?.ask(timeoutMs > 0) : undefined;
      const entering: Entering = { request, needsPlace, admission };
      const mustWait =
        admission !== undefined && isRefused(admission)
          ? timeoutMs > 0 && isWorthWaiting(admission)
          : isBehind || needsPlace;
      if (!mustWait) return turns.open(request, admission);
      return list.during(request, onWaiting, async (one) => {
        try {
          if (one.gone.aborted) await one.ended;
          return await waitForTurn(entering, one, onWaiting);
        } catch (error) {
          if (isAdmitted(entering.admission)) entering.admission?.cancel();
          throw error;
        }
      });
    },
    depth: () => ({ waiting: list.size(), running: turns.running() }),
  };
  return queue;
}

/** Until one is back, no limits are asked, or asked again: what waits for it takes nothing from its key. */
const mustWaitForBackend = (
  { places, backendWaitMs }: Pick<RequestQueueOptions, "places" | "backendWaitMs">,
  candidates: readonly string[],
): boolean => backendWaitMs > 0 && !places.isAnyIn(candidates);

const isAdmitted = (admission: Admission | undefined): boolean => admission !== undefined && !isRefused(admission);

/** Such a refusal tells its client more than a full list does. */
const isForWindow = (refused: Admission | undefined): boolean => refused !== undefined && !lacksPlace(refused);

const isFull = (error: unknown): boolean => error instanceof ProxyError && error.code === "queue_full";
