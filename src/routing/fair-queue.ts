import type { SubjectId } from "../domain/keys.ts";
import type { Entry } from "../domain/admissions.ts";
import type { Choice } from "../domain/backends.ts";

interface FairQueueOptions<Ticket> {
  maxWaiting: number;
  /** The place that a request would get now. */
  findPlace: (ticket: Ticket) => Choice | undefined;
  /** Requests of a group may use the same places. It is asked once for each that waits. */
  groupOf: (ticket: Ticket) => string;
  /** Called when a request that waited has a place. */
  onGranted: (ticket: Ticket, choice: Choice) => void;
  /** Called when a request that waited is refused, to make room for one of another line. */
  onDisplaced: (ticket: Ticket) => void;
}

/** What takes turns with others like it. */
interface Turns {
  /** A later one has a higher one. */
  number: number;
  inFlight: number;
  /** How many places had been given when it last got one. */
  servedAt: number;
}

/** The requests of a user, or of a key without users, that wait or have a place. */
interface Line<Ticket> extends Turns {
  /** Those of its team; without one, its own. */
  team: Turns;
  /** Oldest first. */
  waiting: Set<Ticket>;
}

/** Whose request it is: the user, or else the key; and the team, or else the same. */
export type TurnOf = readonly [own: SubjectId, team: SubjectId];

/** A request that waits. */
interface Waiting<Ticket> {
  line: Line<Ticket>;
  group: string;
  /** A newer request has a higher one. */
  number: number;
}

/**
 * The requests that wait and may use the same places. While these are full, all of them are passed over at once: otherwise
 * each request that ends elsewhere would cost more, the more wait here.
 */
type Groups<Ticket> = Map<string, Map<Line<Ticket>, Map<Ticket, Waiting<Ticket>>>>;

/**
 * The one list of waiting requests, which share the places at the backends, fairly by team, and within one by user or key;
 * who is in no team has turns like one.
 * A free place goes to the team with the fewest requests in flight; of several such teams, to the one that was served least
 * recently; within it by the same rule. The requests of one user or key keep their order. If too many wait, the line that waits with the most loses its newest
 * request to one that waits with less, so nobody can keep the others out.
 */
export function createFairQueue<Ticket>(options: FairQueueOptions<Ticket>) {
  const { maxWaiting, findPlace, groupOf, onGranted, onDisplaced } = options;
  const { lines, lineOf } = createLines<Ticket>();
  const groups: Groups<Ticket> = new Map();
  const waiting = new Map<Ticket, Waiting<Ticket>>();
  let [served, waited] = [0, 0];

  function run(line: Line<Ticket>): void {
    served += 1;
    for (const turns of turnsOf(line)) {
      turns.inFlight += 1;
      turns.servedAt = served;
    }
  }

  function wait(ticket: Ticket, line: Line<Ticket>): void {
    const one = { line, group: groupOf(ticket), number: ++waited };
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
  }

  /** @returns whether a request was displaced for one of this line */
  function makeRoomFor(line: Line<Ticket>): boolean {
    const displaced = findDisplaced(lines.values(), line);
    if (displaced === undefined) return false;
    stopWaiting(displaced);
    onDisplaced(displaced);
    return true;
  }

  /** @returns whether a request that waited got a place */
  function grantNext(): boolean {
    const next = findNext(groups, findPlace);
    if (next === undefined) return false;
    stopWaiting(next.ticket);
    run(next.line);
    onGranted(next.ticket, next.choice);
    return true;
  }

  return {
    /** Whether the request has a place, waits, or is refused because too many wait, or it does not. */
    enter(ticket: Ticket, of: TurnOf, waits: boolean): Entry {
      const choice = findPlace(ticket);
      const line = lineOf(of);
      if (choice !== undefined) {
        run(line);
        return choice;
      }
      if (!waits || (waiting.size >= maxWaiting && !makeRoomFor(line))) return "full";
      wait(ticket, line);
      return "waiting";
    },
    /** To be called when the request no longer waits. */
    leave: stopWaiting,
    /** To be called when a request has ended that had a place. */
    end(of: TurnOf): void {
      for (const turns of turnsOf(lineOf(of))) turns.inFlight -= 1;
      grantNext();
    },
    /** To be called when any number of places became free in another way. */
    grant(): void {
      while (waiting.size > 0 && grantNext());
    },
    /** Those that wait, oldest first. */
    waiting: (): Ticket[] => [...waiting.keys()],
  };
}

/** Idle ones are kept for their next request, until there are so many. */
const maxLines = 1000;

function createLines<Ticket>() {
  const lines = new Map<SubjectId | string, Line<Ticket>>();
  const teams = new Map<SubjectId, Turns>();
  let [numbers, forgetAt] = [0, maxLines];

  function forgetIdle(): void {
    for (const [id, { inFlight, waiting }] of lines) if (inFlight === 0 && waiting.size === 0) lines.delete(id);
    const used = new Set(lines.values().map(({ team }) => team));
    for (const [id, team] of teams) if (!used.has(team)) teams.delete(id);
    forgetAt = Math.max(maxLines, 2 * lines.size);
  }

  const newTurns = (): Turns => ({ number: ++numbers, inFlight: 0, servedAt: 0 });

  function teamOf(id: SubjectId): Turns {
    const found = teams.get(id) ?? newTurns();
    teams.set(id, found);
    return found;
  }

  return {
    lines,
    lineOf([own, team]: TurnOf): Line<Ticket> {
      return lines.getOrInsertComputed(own === team ? own : `${team} ${own}`, () => {
        if (lines.size >= forgetAt) forgetIdle();
        const turns = newTurns();
        return Object.assign(turns, { waiting: new Set<Ticket>(), team: own === team ? turns : teamOf(team) });
      });
    },
  };
}

function join<Ticket>(groups: Groups<Ticket>, ticket: Ticket, one: Waiting<Ticket>): void {
  const group = groups.getOrInsertComputed(one.group, () => new Map());
  group.getOrInsertComputed(one.line, () => new Map()).set(ticket, one);
}

function leaveGroup<Ticket>(groups: Groups<Ticket>, ticket: Ticket, one: Waiting<Ticket>): void {
  const group = groups.get(one.group);
  const ofLine = group?.get(one.line);
  if (group === undefined || ofLine?.delete(ticket) !== true) return;
  if (ofLine.size === 0) group.delete(one.line);
  if (group.size === 0) groups.delete(one.group);
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
    for (const [line, ofLine] of group) {
      if (next !== undefined && line !== next.line && !isBefore(line, next.line)) continue;
      const [first] = ofLine;
      if (first === undefined || (next?.line === line && next.number < first[1].number)) continue;
      const [ticket, one] = first;
      const choice = findPlace(ticket);
      if (choice === undefined) break;
      next = { ...one, ticket, choice };
    }
  }
  return next;
}

/** Those of a line and of its team, if it has one. */
const turnsOf = (line: Line<unknown>): readonly Turns[] => (line.team === line ? [line] : [line, line.team]);

/** Of several that have not been served, the one that waited first comes first. */
const compareTurns = (one: Turns, other: Turns): number =>
  one.inFlight - other.inFlight || one.servedAt - other.servedAt || one.number - other.number;

const isBefore = (one: Line<unknown>, other: Line<unknown>): boolean =>
  (compareTurns(one.team, other.team) || compareTurns(one, other)) < 0;

/**
 * The request that makes room for one of `own`, the newest of the line that waits with the most; of several such lines, of the
 * one with the most in flight. Undefined if `own` would take the lead: it would be displaced in turn, and so on without end.
 */
function findDisplaced<Ticket>(lines: Iterable<Line<Ticket>>, own: Line<Ticket>): Ticket | undefined {
  let longest: Line<Ticket> | undefined;
  for (const line of lines) {
    const more = line.waiting.size - (longest?.waiting.size ?? 0);
    if (more > 0 || (more === 0 && line.inFlight > (longest?.inFlight ?? 0))) longest = line;
  }
  if (longest === undefined) return undefined;
  const more = longest.waiting.size - own.waiting.size - 1;
  const staysBehind = more > 0 || (more === 0 && own.inFlight < longest.inFlight);
  return staysBehind ? [...longest.waiting].at(-1) : undefined;
}
