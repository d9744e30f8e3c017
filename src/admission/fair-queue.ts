import type { KeyId } from "../domain/keys.ts";

/** Shares a fixed number of places among requests, fairly by key. */
export interface FairQueue<Ticket> {
  /** Whether the request has a place, waits for one, or is refused because too many wait. */
  enter(ticket: Ticket, keyId: KeyId): EntryState;
  /** To be called when the request has ended, or no longer waits. */
  leave(ticket: Ticket): void;
}

export type EntryState = "granted" | "waiting" | "full";

export interface FairQueueOptions<Ticket> {
  places: number;
  maxWaiting: number;
  /** Called when a request that waited gets a place. */
  onGranted: (ticket: Ticket) => void;
  /** Called when a request that waited is refused, to make room for one of another key. */
  onDisplaced: (ticket: Ticket) => void;
}

/** The requests of a key that wait, oldest first, and how many of it are in flight. */
interface Line<Ticket> {
  keyId: KeyId;
  queue: Set<Ticket>;
  count: number;
}

/**
 * A free place goes to the key with the fewest requests in flight; of several such keys, to the one that was served least
 * recently. The requests of one key keep their order. If too many wait, the key that waits with the most loses its newest
 * request to one that waits with less, so no key can keep the others out.
 */
export function createFairQueue<Ticket>(options: FairQueueOptions<Ticket>): FairQueue<Ticket> {
  const { places, maxWaiting, onGranted, onDisplaced } = options;
  const running = new Map<Ticket, KeyId>();
  const inFlight = new Map<KeyId, number>();
  const waiting = new Map<Ticket, KeyId>();
  const queues = new Map<KeyId, Set<Ticket>>();
  /** How many places had been given when each of these keys last got one. */
  const servedAt = new Map<KeyId, number>();
  let served = 0;

  function add(keyId: KeyId, change: 1 | -1): void {
    const count = (inFlight.get(keyId) ?? 0) + change;
    if (count === 0) inFlight.delete(keyId);
    else inFlight.set(keyId, count);
  }

  function forget(keyId: KeyId): void {
    if (!inFlight.has(keyId) && !queues.has(keyId)) servedAt.delete(keyId);
  }

  function run(ticket: Ticket, keyId: KeyId): void {
    running.set(ticket, keyId);
    add(keyId, 1);
    served += 1;
    servedAt.set(keyId, served);
  }

  function stopWaiting(ticket: Ticket, keyId: KeyId): void {
    waiting.delete(ticket);
    const queue = queues.get(keyId);
    queue?.delete(ticket);
    if (queue?.size === 0) queues.delete(keyId);
  }

  function grantNext(): void {
    let next: { keyId: KeyId; ticket: Ticket; count: number; at: number } | undefined;
    for (const [keyId, [ticket]] of queues) {
      const [count, at] = [inFlight.get(keyId) ?? 0, servedAt.get(keyId) ?? 0];
      const isNext = next === undefined || count < next.count || (count === next.count && at < next.at);
      if (isNext && ticket !== undefined) next = { keyId, ticket, count, at };
    }
    if (next === undefined) return;
    stopWaiting(next.ticket, next.keyId);
    run(next.ticket, next.keyId);
    onGranted(next.ticket);
  }

  /** Of several keys that wait with as many, the one with the most in flight. */
  function findLongest(): Line<Ticket> | undefined {
    let longest: Line<Ticket> | undefined;
    for (const [keyId, queue] of queues) {
      const count = inFlight.get(keyId) ?? 0;
      const more = queue.size - (longest?.queue.size ?? 0);
      if (longest === undefined || more > 0 || (more === 0 && count > longest.count)) longest = { keyId, queue, count };
    }
    return longest;
  }

  /** @returns whether a request was displaced for one of this key */
  function makeRoomFor(keyId: KeyId): boolean {
    const longest = findLongest();
    if (longest === undefined) return false;
    const more = longest.queue.size - (queues.get(keyId)?.size ?? 0) - 1;
    // A key that took the lead would be displaced in turn, and so on without end.
    const staysBehind = more > 0 || (more === 0 && (inFlight.get(keyId) ?? 0) < longest.count);
    const newest = staysBehind ? [...longest.queue].at(-1) : undefined;
    if (newest === undefined) return false;
    stopWaiting(newest, longest.keyId);
    forget(longest.keyId);
    onDisplaced(newest);
    return true;
  }

  return {
    enter(ticket, keyId) {
      if (running.size < places) {
        run(ticket, keyId);
        return "granted";
      }
      if (waiting.size >= maxWaiting && !makeRoomFor(keyId)) return "full";
      waiting.set(ticket, keyId);
      const queue = queues.get(keyId);
      if (queue === undefined) queues.set(keyId, new Set([ticket]));
      else queue.add(ticket);
      return "waiting";
    },
    leave(ticket) {
      const waitsFor = waiting.get(ticket);
      if (waitsFor !== undefined) {
        stopWaiting(ticket, waitsFor);
        forget(waitsFor);
      }
      const keyId = running.get(ticket);
      if (keyId === undefined) return;
      running.delete(ticket);
      add(keyId, -1);
      grantNext();
      forget(keyId);
    },
  };
}
