import { ProxyError } from "../errors.ts";
import { type AbortReason, clientLeft, revoked, stopped } from "../upstream/abort-reason.ts";
import type { Destination, ListedRequest as PlaceRequest, Places, Rank } from "../../domain/admissions.ts";
import type { BackendSign, Choice } from "../../domain/backends.ts";
import type { KeyId } from "../../domain/keys.ts";
import type { MonotonicClock } from "../../time/clock.ts";

/** The requests of this process that wait, whatever for. */
export interface WaitingList {
  /**
   * Has the request in the list while `work` waits for what it needs.
   * @throws AbortReason if it ends before; what `work` throws
   */
  during<T>(request: ListedRequest, onWaiting: OnWaiting, work: (one: Waiting) => Promise<T>): Promise<T>;
  size(): number;
}

export interface ListedRequest extends Destination {
  keyId: KeyId;
  /** When it arrived, by the monotonic clock. */
  startedAt: number;
  /** Fires when the client leaves. */
  client: AbortSignal;
}

/** Called with what a request that waits can be asked. */
export type OnWaiting = (one: Pick<Waiting, "end" | "rank">) => void;

/** Does nothing once the wait is over. */
export type EndWait = (reason: AbortReason | ProxyError) => void;

/** How long a request waits for a place. */
export interface Patience {
  /**
   * It has to wait from now on.
   * @param onOut called whenever no backend is in meanwhile
   * @returns to be called when it need not wait
   */
  begin(end: EndWait, onOut: () => void): () => void;
}

export interface Waiting {
  /** Enters the list that all processes share. @throws ProxyError if too many wait */
  enterForLimits(): Promise<void>;
  /**
   * Enters it for a place at a backend, or goes on waiting there for that.
   * @param tried the backends that it was at already
   * @param patience undefined: it does not wait
   * @param onOut called whenever no backend is in meanwhile
   * @throws ProxyError if too many wait, or its patience ends
   */
  enterForPlace(tried: readonly string[], patience: Patience | undefined, onOut?: () => void): Promise<Choice>;
  report(sign: BackendSign): void;
  /** Where it stands in its model's line; undefined where nothing waits for backends. */
  rank: (() => Promise<Rank | undefined>) | undefined;
  /** Leaves it, and gives back the place. See `Places`. */
  leave(cachedShare?: number): void;
  /** Rejects when the wait ends before its time. */
  ended: Promise<never>;
  /** Fires at the same moment. */
  gone: AbortSignal;
  end: EndWait;
}

export interface WaitingListOptions {
  places: Places;
  /** How long requests wait until a backend is in; 0: not at all. */
  backendWaitMs: number;
  /** Fires when the program no longer waits for requests. */
  stopping: AbortSignal;
  /** Registers what runs when the requests of a key are to end that had begun until then, by the monotonic clock. */
  onKeyEnded: (listener: (keyId: KeyId, begunUntil: number) => void) => void;
}

export function createWaitingList(options: WaitingListOptions): WaitingList {
  const { stopping, onKeyEnded } = options;
  const all = new Map<number, ListedRequest & Pick<Waiting, "end">>();
  let lastTicket = 0;
  stopping.addEventListener("abort", () => {
    for (const { end } of all.values()) end(stopped());
  });
  onKeyEnded((ended, begunUntil) => {
    for (const { keyId, startedAt, end } of all.values()) {
      if (keyId === ended && startedAt <= begunUntil) end(revoked());
    }
  });

  return {
    async during(request, onWaiting, work) {
      const { client } = request;
      lastTicket += 1;
      const ticket = lastTicket;
      const one = openWaiting(request, ticket, options);
      const leave = (): void => one.end(clientLeft());
      all.set(ticket, { ...request, end: one.end });
      client.addEventListener("abort", leave, { once: true });
      try {
        if (client.aborted) leave();
        onWaiting(one);
        return await work(one);
      } catch (error) {
        one.leave();
        throw error;
      } finally {
        client.removeEventListener("abort", leave);
        all.delete(ticket);
      }
    },
    size: () => all.size,
  };
}

function openWaiting(
  { keyId, model, candidates, characters, conversation }: ListedRequest,
  ticket: number,
  { places, backendWaitMs }: Pick<WaitingListOptions, "places" | "backendWaitMs">,
): Waiting {
  const [ending, gone] = [Promise.withResolvers<never>(), new AbortController()];
  const { promise: ended } = ending;
  ended.catch(() => {});
  const end: EndWait = (reason) => {
    ending.reject(reason);
    gone.abort();
  };

  /** @returns undefined if it has to wait */
  async function enter(
    waits: Pick<PlaceRequest, "waitsFor" | "tried">,
    granted: PromiseWithResolvers<Choice>,
  ): Promise<Choice | undefined> {
    const listener = { onGranted: granted.resolve, onDisplaced: () => end(new ProxyError("queue_full")) };
    const listed = { keyId, model, candidates, characters, conversation, ...waits };
    const entry = await Promise.race([places.enter(ticket, listed, listener), granted.promise, ended]);
    if (entry === "full") throw new ProxyError("queue_full");
    return entry === "waiting" ? undefined : entry;
  }

  return {
    ended,
    gone: gone.signal,
    end,
    enterForLimits: async () => void (await enter({ waitsFor: "limits", tried: [] }, Promise.withResolvers())),
    async enterForPlace(tried, patience, onOut = () => {}) {
      const granted = Promise.withResolvers<Choice>();
      const choice = await enter({ waitsFor: patience === undefined ? "nothing" : "place", tried }, granted);
      if (choice !== undefined) return choice;
      const stop = patience?.begin(end, onOut);
      return await Promise.race([granted.promise, ended]).finally(stop);
    },
    rank: backendWaitMs > 0 ? () => places.rankOf(ticket) : undefined,
    report: (sign) => places.report(ticket, sign),
    leave: (cachedShare) => places.leave(ticket, cachedShare),
  };
}

export interface PatienceOptions {
  places: Pick<Places, "isAnyIn" | "onChanged">;
  /** How long it waits for a place; 0: not at all. */
  timeoutMs: number;
  /** How long it waits until a backend is in; 0: not at all. */
  backendWaitMs: number;
  monotonic: MonotonicClock;
}

/** It ends at one time where a backend of the model is in, and at another where none is. */
export function createPatience(
  candidates: readonly string[],
  { places, timeoutMs, backendWaitMs, monotonic }: PatienceOptions,
): Patience {
  let placeUntil = monotonic() + timeoutMs;
  let backendUntil: number | undefined;
  let wasOut = false;

  function look(end: EndWait, onOut: () => void): Timer {
    const now = monotonic();
    const isOut = !places.isAnyIn(candidates);
    if (isOut) backendUntil ??= now + backendWaitMs;
    else if (wasOut) placeUntil = Math.max(placeUntil, now + timeoutMs);
    wasOut = isOut;
    if (isOut) onOut();
    // Those that have waited for a backend come to it one by one.
    const until = isOut ? (backendUntil ?? now) : Math.max(placeUntil, backendUntil ?? 0);
    const tooLate = (): void => end(new ProxyError(isOut ? "backend_unavailable" : "queue_timeout"));
    return setTimeout(tooLate, Math.max(0, until - now));
  }

  return {
    begin(end, onOut) {
      let timer = look(end, onOut);
      const stopListening = places.onChanged(() => {
        clearTimeout(timer);
        timer = look(end, onOut);
      });
      return () => {
        clearTimeout(timer);
        stopListening();
      };
    },
  };
}
