import type { KeyId } from "../domain/keys.ts";
import type { Entry, WaitsFor } from "../domain/admissions.ts";
import type { Choice } from "../domain/backends.ts";

/** The one list of waiting requests, which share the places at the backends, fairly by key. */
export interface FairQueue<Ticket> {
  /**
   * Whether the request has a place, waits, or is refused because too many wait, or it does not. One that waits for the
   * limits of its key is in the list and gets no place; it enters again when they admit it, and keeps its turn.
   */
  enter(ticket: Ticket, keyId: KeyId, waitsFor: WaitsFor): Entry;
  /** To be called when the request has ended, or no longer waits. */
  leave(ticket: Ticket): void;
  /** To be called when any number of places became free in another way. */
  grant(): void;
  /** Those that wait for a place, oldest first. */
  waiting(): Ticket[];
}

export interface FairQueueOptions<Ticket> {
  maxWaiting: number;
  /** The place that a request would get now. */
  findPlace: (ticket: Ticket) => Choice | undefined;
  /** Requests of a group may use the same places. */
  groupOf: (ticket: Ticket) => string;
  /** Called when a request that waited has a place. */
  onGranted: (ticket: Ticket, choice: Choice) => void;
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
  const { maxWaiting, findPlace, onGranted, onDisplaced } = options;
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

  /** @returns whether a request that waited got a place */
  function grantNext(): boolean {
    const next = findNext(lines, options);
    if (next === undefined) return false;
    run(next.ticket, next.keyId);
    onGranted(next.ticket, next.choice);
    return true;
  }

  return {
    enter(ticket, keyId, waitsFor) {
      const choice = waitsFor === "limits" ? undefined : findPlace(ticket);
      if (choice !== undefined) {
        run(ticket, keyId);
        return choice;
      }
      if (waitsFor === "nothing") return "full";
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
    grant() {
      while (waiting.size > 0 && grantNext());
    },
    waiting: () =>
      [...waiting].flatMap(([ticket, keyId]) => (lines.get(keyId)?.waiting.get(ticket) === "place" ? [ticket] : [])),
  };
}

/** The request that the next free place goes to. */
interface Next<Ticket> {
  ticket: Ticket;
  choice: Choice;
  keyId: KeyId;
  line: Line<Ticket>;
}

function findNext<Ticket>(
  lines: Iterable<[KeyId, Line<Ticket>]>,
  { findPlace, groupOf }: Pick<FairQueueOptions<Ticket>, "findPlace" | "groupOf">,
): Next<Ticket> | undefined {
  const full = new Set<string>();
  const placeOf = (ticket: Ticket): Choice | undefined => {
    const group = groupOf(ticket);
    const choice = full.has(group) ? undefined : findPlace(ticket);
    if (choice === undefined) full.add(group);
    return choice;
  };
  let next: Next<Ticket> | undefined;
  for (const [keyId, line] of lines) {
    const found = next === undefined || isBefore(line, next.line) ? firstWithPlace(line, placeOf) : undefined;
    if (found !== undefined) next = { ...found, keyId, line };
  }
  return next;
}

const isBefore = (one: Line<unknown>, other: Line<unknown>): boolean =>
  one.inFlight < other.inFlight || (one.inFlight === other.inFlight && one.servedAt < other.servedAt);

function firstWithPlace<Ticket>(
  line: Line<Ticket>,
  placeOf: (ticket: Ticket) => Choice | undefined,
): Pick<Next<Ticket>, "ticket" | "choice"> | undefined {
  for (const [ticket, waitsFor] of line.waiting) {
    const choice = waitsFor === "place" ? placeOf(ticket) : undefined;
    if (choice !== undefined) return { ticket, choice };
  }
  return undefined;
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
