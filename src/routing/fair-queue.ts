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
  /** Requests of a group may use the same places. It is asked once for each that waits. */
  groupOf: (ticket: Ticket) => string;
  /** Called when a request that waited has a place. */
  onGranted: (ticket: Ticket, choice: Choice) => void;
  /** Called when a request that waited is refused, to make room for one of another key. */
  onDisplaced: (ticket: Ticket) => void;
}

/** The requests of a key that wait or have a place. */
interface Line<Ticket> {
  keyId: KeyId;
  /** A later line has a higher one. */
  number: number;
  /** Oldest first. */
  waiting: Set<Ticket>;
  inFlight: number;
  /** How many places had been given when it last got one. */
  servedAt: number;
}

/** A request that waits. */
interface Waiting<Ticket> {
  line: Line<Ticket>;
  group: string;
  waitsFor: WaitsFor;
  /** A newer request has a higher one. */
  number: number;
}

/**
 * The requests that wait and may use the same places. While these are full, all of them are passed over at once: otherwise
 * each request that ends elsewhere would cost more, the more wait here.
 */
interface Group<Ticket> {
  /** Each oldest first. */
  waiting: Map<Line<Ticket>, Map<Ticket, Waiting<Ticket>>>;
  /** How many of them wait for a place. */
  forPlace: number;
}

type Groups<Ticket> = Map<string, Group<Ticket>>;

/**
 * A free place goes to the key with the fewest requests in flight; of several such keys, to the one that was served least
 * recently. The requests of one key keep their order. If too many wait, the key that waits with the most loses its newest
 * request to one that waits with less, so no key can keep the others out.
 */
export function createFairQueue<Ticket>(options: FairQueueOptions<Ticket>): FairQueue<Ticket> {
  const { maxWaiting, findPlace, groupOf, onGranted, onDisplaced } = options;
  const { lines, lineOf, forgetEmpty } = createLines<Ticket>();
  const groups: Groups<Ticket> = new Map();
  const [running, waiting] = [new Map<Ticket, KeyId>(), new Map<Ticket, Waiting<Ticket>>()];
  let [served, waited] = [0, 0];

  function run(ticket: Ticket, keyId: KeyId): void {
    stopWaiting(ticket);
    running.set(ticket, keyId);
    const line = lineOf(keyId);
    line.inFlight += 1;
    line.servedAt = ++served;
  }

  function wait(ticket: Ticket, keyId: KeyId, waitsFor: WaitsFor): void {
    const known = waiting.get(ticket);
    if (known !== undefined) return changeReason(groups, known, waitsFor);
    const one = { line: lineOf(keyId), group: groupOf(ticket), waitsFor, number: ++waited };
    waiting.set(ticket, one);
    one.line.waiting.add(ticket);
    join(groups, ticket, one);
  }

  function stopWaiting(ticket: Ticket): void {
    const one = waiting.get(ticket);
    if (one === undefined) return;
    waiting.delete(ticket);
    one.line.waiting.delete(ticket);
    leaveGroup(groups, ticket, one);
    forgetEmpty(one.line.keyId);
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
    const next = findNext(groups, findPlace);
    if (next === undefined) return false;
    run(next.ticket, next.line.keyId);
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
      wait(ticket, keyId, waitsFor);
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
    waiting: () => [...waiting].flatMap(([ticket, { waitsFor }]) => (waitsFor === "place" ? [ticket] : [])),
  };
}

function createLines<Ticket>() {
  const lines = new Map<KeyId, Line<Ticket>>();
  let numbers = 0;
  return {
    lines,
    lineOf(keyId: KeyId): Line<Ticket> {
      const found = lines.get(keyId) ?? { keyId, number: ++numbers, waiting: new Set(), inFlight: 0, servedAt: 0 };
      lines.set(keyId, found);
      return found;
    },
    forgetEmpty(keyId: KeyId): void {
      const line = lines.get(keyId);
      if (line?.inFlight === 0 && line.waiting.size === 0) lines.delete(keyId);
    },
  };
}

function join<Ticket>(groups: Groups<Ticket>, ticket: Ticket, one: Waiting<Ticket>): void {
  const group = groups.get(one.group) ?? { waiting: new Map(), forPlace: 0 };
  groups.set(one.group, group);
  const ofLine = group.waiting.get(one.line) ?? new Map<Ticket, Waiting<Ticket>>();
  group.waiting.set(one.line, ofLine);
  ofLine.set(ticket, one);
  if (one.waitsFor === "place") group.forPlace += 1;
}

function leaveGroup<Ticket>(groups: Groups<Ticket>, ticket: Ticket, one: Waiting<Ticket>): void {
  const group = groups.get(one.group);
  const ofLine = group?.waiting.get(one.line);
  if (group === undefined || ofLine?.delete(ticket) !== true) return;
  if (one.waitsFor === "place") group.forPlace -= 1;
  if (ofLine.size === 0) group.waiting.delete(one.line);
  if (group.waiting.size === 0) groups.delete(one.group);
}

function changeReason<Ticket>(groups: Groups<Ticket>, one: Waiting<Ticket>, waitsFor: WaitsFor): void {
  const group = groups.get(one.group);
  if (group !== undefined && waitsFor !== one.waitsFor) group.forPlace += waitsFor === "place" ? 1 : -1;
  one.waitsFor = waitsFor;
}

/** The request that the next free place goes to. */
interface Next<Ticket> extends Waiting<Ticket> {
  ticket: Ticket;
  choice: Choice;
}

function findNext<Ticket>(
  groups: Groups<Ticket>,
  findPlace: FairQueueOptions<Ticket>["findPlace"],
): Next<Ticket> | undefined {
  let next: Next<Ticket> | undefined;
  for (const group of groups.values()) {
    if (group.forPlace === 0) continue;
    for (const [line, ofLine] of group.waiting) {
      if (next !== undefined && line !== next.line && !isBefore(line, next.line)) continue;
      const first = firstForPlace(ofLine);
      if (first === undefined || (next?.line === line && next.number < first.number)) continue;
      const choice = findPlace(first.ticket);
      if (choice === undefined) break;
      next = { ...first, choice };
    }
  }
  return next;
}

/** Of several that have not been served, the one that waited first comes first. */
const isBefore = (one: Line<unknown>, other: Line<unknown>): boolean =>
  (one.inFlight - other.inFlight || one.servedAt - other.servedAt || one.number - other.number) < 0;

function firstForPlace<Ticket>(ofLine: Map<Ticket, Waiting<Ticket>>): Omit<Next<Ticket>, "choice"> | undefined {
  for (const [ticket, one] of ofLine) if (one.waitsFor === "place") return { ...one, ticket };
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
  return staysBehind ? [...longest.waiting].at(-1) : undefined;
}
