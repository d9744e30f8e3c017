import type { SubjectId } from "../domain/keys.ts";
import type { Entry } from "../domain/admissions.ts";
import type { Choice } from "../domain/backends.ts";
import { priorities, type Priority } from "../domain/limits.ts";

interface FairQueueOptions<Ticket> {
  /** Of low priority, and as many others. */
  maxWaiting: number;
  /** The place that a request would get now. */
  findPlace: (ticket: Ticket) => Choice | undefined;
  /**
   * Requests of a group may use the same places. One that is urgent comes before others of its priority that are not, as soon
   * as there is a place for it. It is asked once for each that waits.
   */
  groupOf: (ticket: Ticket) => { group: string; isUrgent: boolean };
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

/** The requests of a user, or of a key without users, of one priority that wait or have a place. */
interface Line<Ticket> extends Turns {
  priority: Priority;
  /** Those of its team; without one, its own. */
  team: Turns;
  /** Oldest first. */
  waiting: Set<Ticket>;
}

/** Whose request it is: the user, or else the key; and the team, or else the same; and whom it comes before. */
export type TurnOf = readonly [own: SubjectId, team: SubjectId, priority?: Priority | undefined];

/** A request that waits. */
interface Waiting<Ticket> {
  line: Line<Ticket>;
  group: string;
  isUrgent: boolean;
  /** A newer request has a higher one. */
  number: number;
}

/**
 * The requests that wait and may use the same places. While these are full, all of them are passed over at once: otherwise
 * each request that ends elsewhere would cost more, the more wait here.
 */
type Groups<Ticket> = Map<string, Map<Line<Ticket>, Map<Ticket, Waiting<Ticket>>>>;

/** Of the places that are given while a lower priority waits too, every eighth goes below. */
const turnBelow = 8;

/**
 * The one list of waiting requests, which share the places at the backends: by priority, then fairly by team, and within one
 * by user or key; who is in no team has turns like one.
 * A free place goes to the team with the fewest requests in flight; of several such teams, to the one that was served least
 * recently; within it by the same rule. The requests of one user or key keep their order. If too many wait, the line that
 * waits with the most loses its newest request to one that waits with less, so nobody can keep the others out; those of low
 * priority are counted apart.
 */
export function createFairQueue<Ticket>(options: FairQueueOptions<Ticket>) {
  const { maxWaiting, findPlace, groupOf, onGranted, onDisplaced } = options;
  const { lines, lineOf } = createLines<Ticket>();
  const groups: Groups<Ticket> = new Map();
  /** Of each priority, the oldest first. */
  const waiting: Record<Priority, Map<Ticket, Waiting<Ticket>>> = {
    high: new Map(),
    normal: new Map(),
    low: new Map(),
  };
  /** How many places were given in a row over a lower priority that waited. */
  let overtaken = 0;
  let [served, waited] = [0, 0];

  function run(line: Line<Ticket>): void {
    served += 1;
    for (const turns of turnsOf(line)) {
      turns.inFlight += 1;
      turns.servedAt = served;
    }
  }

  function wait(ticket: Ticket, line: Line<Ticket>): void {
    const one = { line, ...groupOf(ticket), number: ++waited };
    waiting[line.priority].set(ticket, one);
    line.waiting.add(ticket);
    const group = groups.getOrInsertComputed(one.group, () => new Map());
    group.getOrInsertComputed(line, () => new Map()).set(ticket, one);
  }

  function stopWaiting(ticket: Ticket): void {
    for (const alike of Object.values(waiting)) {
      const one = alike.get(ticket);
      if (one === undefined) continue;
      alike.delete(ticket);
      one.line.waiting.delete(ticket);
      leaveGroup(groups, ticket, one);
    }
  }

  /** @returns whether there is room for one of this line; a request of another may be displaced for that */
  function makeRoomFor(line: Line<Ticket>): boolean {
    const isLow = line.priority === "low";
    if ((isLow ? waiting.low.size : waiting.high.size + waiting.normal.size) < maxWaiting) return true;
    const alike = lines.values().filter(({ priority }) => (priority === "low") === isLow);
    const displaced = findDisplaced(alike, line);
    if (displaced === undefined) return false;
    stopWaiting(displaced);
    onDisplaced(displaced);
    return true;
  }

  /** @returns whether a request that waited got a place */
  function grantNext(): boolean {
    const highest = priorities.find((one) => waiting[one].size > 0);
    const below = overtaken < turnBelow - 1 ? undefined : findNext(groups, findPlace, highest);
    const next = below ?? findNext(groups, findPlace);
    if (next === undefined) return false;
    stopWaiting(next.ticket);
    if (below !== undefined) overtaken = 0;
    else if (priorities.some((one) => waiting[one].size > 0 && isLower(one, next.line.priority))) overtaken += 1;
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
      if (!waits || !makeRoomFor(line)) return "full";
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
      while (grantNext());
    },
    /** Those that wait, by priority, and then the oldest first. */
    waiting: (): Ticket[] => priorities.flatMap((priority) => [...waiting[priority].keys()]),
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

  return {
    lines,
    lineOf([own, team, priority = "normal"]: TurnOf): Line<Ticket> {
      const id = own === team && priority === "normal" ? own : `${priority} ${team} ${own}`;
      return lines.getOrInsertComputed(id, () => {
        if (lines.size >= forgetAt) forgetIdle();
        const turns = newTurns();
        const ofTeam = own === team ? turns : teams.getOrInsertComputed(team, newTurns);
        return Object.assign(turns, { priority, waiting: new Set<Ticket>(), team: ofTeam });
      });
    },
  };
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

/** @param above set: whoever has waited longest, but for those of this priority */
function findNext<Ticket>(
  groups: Groups<Ticket>,
  findPlace: FairQueueOptions<Ticket>["findPlace"],
  above?: Priority,
): Next<Ticket> | undefined {
  let next: Next<Ticket> | undefined;
  const isNext = (one: Waiting<Ticket>): boolean => {
    if (next === undefined) return true;
    if (above !== undefined) return one.number < next.number;
    if (one.line.priority === next.line.priority && one.isUrgent !== next.isUrgent) return one.isUrgent;
    return one.line === next.line ? one.number < next.number : isBefore(one.line, next.line);
  };
  for (const group of groups.values()) {
    for (const [line, ofLine] of group) {
      const [first] = ofLine;
      if (first === undefined || line.priority === above) continue;
      const [ticket, one] = first;
      if (!isNext(one)) continue;
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

const isLower = (one: Priority, other: Priority): boolean => priorities.indexOf(one) > priorities.indexOf(other);

const isBefore = (one: Line<unknown>, other: Line<unknown>): boolean =>
  one.priority === other.priority
    ? (compareTurns(one.team, other.team) || compareTurns(one, other)) < 0
    : isLower(other.priority, one.priority);

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
