import { ProxyError } from "../errors.ts";
import { type AbortReason, clientLeft, revoked, stopped } from "../upstream/abort-reason.ts";
import type { Places, WaitsFor } from "../../domain/admissions.ts";
import type { KeyId } from "../../domain/keys.ts";

/** The requests of this process that wait, whatever for. */
export interface WaitingList {
  /**
   * Has the request in the list while `work` waits for what it needs.
   * @param onWaiting called with what ends the wait
   * @throws AbortReason if it ends before; what `work` throws
   */
  during<T>(request: ListedRequest, onWaiting: (end: EndWait) => void, work: (one: Waiting) => Promise<T>): Promise<T>;
  size(): number;
}

export interface ListedRequest {
  keyId: KeyId;
  /** When it arrived, by the monotonic clock. */
  startedAt: number;
  /** Fires when the client leaves. */
  client: AbortSignal;
}

/** Does nothing once the wait is over. */
export type EndWait = (reason: AbortReason | ProxyError) => void;

export interface Waiting {
  /**
   * Enters the list that all processes share, or goes on waiting there for something else.
   * @returns when it is in the list; for a place, when it has one
   * @throws ProxyError if too many wait
   */
  enter(waitsFor: WaitsFor): Promise<void>;
  /** Leaves it, and gives back the place. */
  leave(): void;
  /** Rejects when the wait ends before its time. */
  ended: Promise<never>;
  /** Fires at the same moment. */
  gone: AbortSignal;
  end: EndWait;
}

export interface WaitingListOptions {
  places: Places;
  /** Fires when the program no longer waits for requests. */
  stopping: AbortSignal;
  /** Registers what runs when the requests of a key are to end that had begun until then, by the monotonic clock. */
  onKeyEnded: (listener: (keyId: KeyId, begunUntil: number) => void) => void;
}

export function createWaitingList({ places, stopping, onKeyEnded }: WaitingListOptions): WaitingList {
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

  function open(keyId: KeyId, ticket: number): Waiting {
    const [ending, gone] = [Promise.withResolvers<never>(), new AbortController()];
    const { promise: ended } = ending;
    ended.catch(() => {});
    const end: EndWait = (reason) => {
      ending.reject(reason);
      gone.abort();
    };
    return {
      ended,
      gone: gone.signal,
      end,
      async enter(waitsFor) {
        const granted = Promise.withResolvers<void>();
        const listener = { onGranted: granted.resolve, onDisplaced: () => end(new ProxyError("queue_full")) };
        const state = await Promise.race([places.enter(ticket, { keyId, waitsFor }, listener), granted.promise, ended]);
        if (state === "full") throw new ProxyError("queue_full");
        if (state === "waiting" && waitsFor === "place") await Promise.race([granted.promise, ended]);
      },
      leave: () => places.leave(ticket),
    };
  }

  return {
    async during({ keyId, startedAt, client }, onWaiting, work) {
      lastTicket += 1;
      const ticket = lastTicket;
      const one = open(keyId, ticket);
      const leave = (): void => one.end(clientLeft());
      all.set(ticket, { keyId, startedAt, client, end: one.end });
      client.addEventListener("abort", leave, { once: true });
      try {
        if (client.aborted) leave();
        onWaiting(one.end);
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
