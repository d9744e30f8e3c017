import type { KeyId } from "../domain/keys.ts";
import type { WaitsFor } from "../domain/admissions.ts";

export type { WaitsFor };

/** The one list of waiting requests, and a number of places that it shares among them, fairly by key. */
export interface FairQueue<Ticket> {
  /**
   * Whether the request has a place, waits, or is refused because too many wait. One that waits for the limits of its key
   * is in the list and gets no place; it enters again when they admit it, and keeps its turn.
   */
  enter(ticket: Ticket, keyId: KeyId, waitsFor: WaitsFor): EntryState;
  /** To be called when the request has ended, or no longer waits. */
  leave(ticket: Ticket): void;
}

export type EntryState = "granted" | "waiting" | "full";

export interface FairQueueOptions<Ticket> {
  /** Undefined: any number. */
  places: number | undefined;
  maxWaiting: number;
  /** Called when a request that waited gets a place. */
  onGranted: (ticket: Ticket) => void;
  /** Called when a request that waited is refused, to make room for one of another key. */
  onDisplaced: (ticket: Ticket) => void;
}

/** The requests of a key that wait or have a place. */
interface Line<Ticket> {
  /** Oldest first. */
  waiting: Map<Ticket, WaitsFor>;
  inFlight: number;
  /** How many places had been given when it last got one. */
  servedAt: number;
}

/**
 * A free place goes to the key with the fewest requests in flight; of several such keys, to the one that was served least
 * recently. The requests of one key keep their order. If too many wait, the key that waits with the most loses its newest
 * request to one that waits with less, so no key can keep the others out.
 */
export function createFairQueue<Ticket>(options: FairQueueOptions<Ticket>): FairQueue<Ticket> {
  const { places = Infinity, maxWaiting, onGranted, onDisplaced } = options;
  const lines = new Map<KeyId, Line<Ticket>>();
  const [running, waiting] = [new Map<Ticket, KeyId>(), new Map<Ticket, KeyId>()];
  let served = 0;

  function lineOf(keyId: KeyId): Line<Ticket> {
    const found = lines.get(keyId) ?? { waiting: new Map(), inFlight: 0, servedAt: 0 };
    lines.set(keyId, found);
    return found;
  }

  function forgetEmpty(keyId: KeyId): void {
    const line = lines.get(keyId);
    if (line?.inFlight === 0 && line.waiting.size === 0) lines.delete(keyId);
  }

  function run(ticket: Ticket, keyId: KeyId): void {
    stopWaiting(ticket);
    running.set(ticket, keyId);
    const line = lineOf(keyId);
    line.inFlight += 1;
    line.servedAt = ++served;
  }

  function stopWaiting(ticket: Ticket): void {
    const keyId = waiting.get(ticket);
    if (keyId === undefined) return;
    waiting.delete(ticket);
    lineOf(keyId).waiting.delete(ticket);
    forgetEmpty(keyId);
  }

  /** @returns whether a request was displaced for one of this key */
  function makeRoomFor(keyId: KeyId): boolean {
    const displaced = findDisplaced(lines.values(), lines.get(keyId));
    if (displaced === undefined) return false;
    stopWaiting(displaced);
    onDisplaced(displaced);
    return true;
  }

  function grantNext(): void {
    const next = findNext(lines.values());
    const keyId = next && waiting.get(next);
    if (next === undefined || keyId === undefined) return;
    run(next, keyId);
    onGranted(next);
  }

  return {
    enter(ticket, keyId, waitsFor) {
      if (waitsFor === "place" && running.size < places) {
        run(ticket, keyId);
        return "granted";
      }
      if (!waiting.has(ticket) && waiting.size >= maxWaiting && !makeRoomFor(keyId)) return "full";
      waiting.set(ticket, keyId);
      lineOf(keyId).waiting.set(ticket, waitsFor);
      return "waiting";
    },
    leave(ticket) {
      stopWaiting(ticket);
      const keyId = running.get(ticket);
      if (keyId === undefined) return;
      running.delete(ticket);
      lineOf(keyId).inFlight -= 1;
      grantNext();
      forgetEmpty(keyId);
    },
  };
}

/** The request that the next free place goes to. */
function findNext<Ticket>(lines: Iterable<Line<Ticket>>): Ticket | undefined {
  let next: { ticket: Ticket; line: Line<Ticket> } | undefined;
  for (const line of lines) {
    const isNext =
      next === undefined ||
      line.inFlight < next.line.inFlight ||
      (line.inFlight === next.line.inFlight && line.servedAt < next.line.servedAt);
    const [ticket] = (isNext && line.waiting.entries().find(([, waitsFor]) => waitsFor === "place")) || [];
    if (ticket !== undefined) next = { ticket, line };
  }
  return next?.ticket;
}

/**
 * The request that makes room for one of `own`, the newest of the key that waits with the most; of several such keys, of the
 * one with the most in flight. Undefined if `own` would take the lead: it would be displaced in turn, and so on without end.
 */
function findDisplaced<Ticket>(lines: Iterable<Line<Ticket>>, own: Line<Ticket> | undefined): Ticket | undefined {
  let longest: Line<Ticket> | undefined;
  for (const line of lines) {
    const more = line.waiting.size - (longest?.waiting.size ?? 0);
    if (more > 0 || (more === 0 && line.inFlight > (longest?.inFlight ?? 0))) longest = line;
  }
  if (longest === undefined) return undefined;
  const more = longest.waiting.size - (own?.waiting.size ?? 0) - 1;
  const staysBehind = more > 0 || (more === 0 && (own?.inFlight ?? 0) < longest.inFlight);
  return staysBehind ? [...longest.waiting.keys()].at(-1) : undefined;
}
