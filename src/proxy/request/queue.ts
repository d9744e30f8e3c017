import { ProxyError } from "../errors.ts";
import { type AbortReason, clientLeft, revoked, stopped } from "../upstream/abort-reason.ts";
import type { Places } from "../../domain/admissions.ts";
import type { KeyId } from "../../domain/keys.ts";

export interface RequestToQueue {
  keyId: KeyId;
  /** When it arrived, by the monotonic clock. */
  startedAt: number;
  /** Fires when the client leaves. */
  client: AbortSignal;
}

export interface RequestQueue {
  /**
   * Waits for a place.
   * @param onWaiting called with what ends the wait
   * @returns gives the place back
   * @throws ProxyError if too many wait, or the wait takes too long; AbortReason if the request ends otherwise
   */
  enter(request: RequestToQueue, onWaiting: (end: EndWait) => void): Promise<() => void>;
  depth(): { waiting: number; running: number };
}

/** Does nothing once there is a place. */
export type EndWait = (reason: AbortReason | ProxyError) => void;

export interface RequestQueueOptions {
  places: Places;
  timeoutMs: number;
  /** Fires when the program no longer waits for requests. */
  stopping: AbortSignal;
  /** Registers what runs when the requests of a key are to end that had begun until then, by the monotonic clock. */
  onKeyEnded: (listener: (keyId: KeyId, begunUntil: number) => void) => void;
}

interface QueuedRequest extends Pick<RequestToQueue, "keyId" | "startedAt"> {
  end: EndWait;
}

export function createRequestQueue({ places, timeoutMs, stopping, onKeyEnded }: RequestQueueOptions): RequestQueue {
  const waiting = new Map<number, QueuedRequest>();
  let lastTicket = 0;
  let running = 0;
  stopping.addEventListener("abort", () => {
    for (const { end } of waiting.values()) end(stopped());
  });
  onKeyEnded((ended, begunUntil) => {
    for (const { keyId, startedAt, end } of waiting.values()) {
      if (keyId === ended && startedAt <= begunUntil) end(revoked());
    }
  });

  async function waitFor(
    ticket: number,
    { keyId, startedAt, client }: RequestToQueue,
    onWaiting: (end: EndWait) => void,
  ): Promise<void> {
    const place = Promise.withResolvers<void>();
    const end: EndWait = place.reject;
    const leave = (): void => end(clientLeft());
    waiting.set(ticket, { keyId, startedAt, end });
    client.addEventListener("abort", leave, { once: true });
    const timer = setTimeout(() => end(new ProxyError("queue_timeout")), timeoutMs);
    try {
      onWaiting(end);
      if (client.aborted) throw clientLeft();
      const listener = { onGranted: place.resolve, onDisplaced: () => end(new ProxyError("queue_full")) };
      const state = await Promise.race([places.enter(ticket, keyId, listener), place.promise]);
      if (state === "full") throw new ProxyError("queue_full");
      if (state === "waiting") await place.promise;
    } finally {
      clearTimeout(timer);
      client.removeEventListener("abort", leave);
      waiting.delete(ticket);
      place.promise.catch(() => {});
    }
  }

  return {
    async enter(request, onWaiting) {
      lastTicket += 1;
      const ticket = lastTicket;
      const leave = (): void => places.leave(ticket);
      try {
        await waitFor(ticket, request, onWaiting);
      } catch (error) {
        leave();
        throw error;
      }
      running += 1;
      return () => {
        running -= 1;
        leave();
      };
    },
    depth: () => ({ waiting: waiting.size, running }),
  };
}
