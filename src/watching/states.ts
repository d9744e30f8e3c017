// The list of what is wrong, since when, and what mends it. `/readyz`, `check`, the console, `tollgate_problem` and the
// notices read it, and judge nothing themselves. What several processes see of one machine, or of one database, is one
// state. Of a kind, a process tells of 8 objects at most. Pure: `watch.ts` keeps the list.

import { type Facts, type Kind, kinds, type Row } from "./state-rules.ts";

export const kindNames = Object.keys(kinds) as Kind[];
const rowOf = (kind: Kind): Row => kinds[kind];
export const remedyOf = (kind: Kind): string => rowOf(kind).remedy;

/** What one process sees. */
export interface State {
  kind: Kind;
  /** Empty where there can be one. */
  object: string;
  since: number;
  what: string;
  count: number | null;
}

const maxObjects = 8;

/** What facts say without a memory, such as those that a command has. */
export const judgeOnce = (facts: Facts): State[] => judge([], facts).standing;

/** @returns what stands now, in the order of the table, and what no longer does */
export function judge(before: readonly State[], facts: Facts): { standing: State[]; gone: State[] } {
  const standing = kindNames.flatMap((kind) => {
    const ofKind = before.filter((one) => one.kind === kind);
    const known = (object: string): State | undefined => ofKind.find((one) => one.object === object);
    const found = rowOf(kind).find(facts, (object) => known(object) !== undefined);
    if (found === undefined) return ofKind;
    return found.slice(0, maxObjects).map(({ object = "", what, since, count }) => {
      const old = known(object);
      const isLess = old !== undefined && (count ?? 0) < (old.count ?? 0);
      const seen = isLess ? { what: old.what, count: old.count } : { what, count: count ?? null };
      return Object.assign(seen, { kind, object, since: old?.since ?? Math.min(since ?? facts.now, facts.now) });
    });
  });
  const isSame = (one: State) => (other: State) => one.kind === other.kind && one.object === other.object;
  return { standing, gone: before.filter((one) => !standing.some(isSame(one))) };
}

/** A state with who sees it, and until when it stood. */
export interface SeenState extends Omit<State, "kind"> {
  kind: string;
  /** The process: `host/pid`. */
  process: string;
  /** Null: it stands. */
  until: number | null;
  silencedUntil: number | null;
  silencedWhy: string | null;
  silencedBy: string | null;
  /** Whether notices told of it; see `notices.ts`. */
  told: number;
}

export interface ListedState extends SeenState {
  /** A process, a machine, or null for all that share the database. */
  instance: string | null;
  remedy: string;
}

export const notSilenced = { silencedUntil: null, silencedWhy: null, silencedBy: null };

const hostOf = (process: string): string => process.split("/")[0] ?? "";

export function instanceOf(kind: Kind, process: string): string | null {
  const { of } = rowOf(kind);
  return of === "all" ? null : of === "instance" ? hostOf(process) : process;
}

/** One list of what processes see: the worst first, and of past ones the latest. Kinds of other builds are left out. */
export function mergeStates(seen: readonly SeenState[], now: number): { states: ListedState[]; past: ListedState[] } {
  const merged = new Map<string, ListedState>();
  const done: ListedState[] = [];
  for (const one of seen.toSorted((a, b) => a.since - b.since)) {
    if (!isKind(one.kind)) continue;
    const instance = instanceOf(one.kind, one.process);
    const id = JSON.stringify([one.kind, one.object, instance]);
    const before = merged.get(id);
    const isSilenced = (one.silencedUntil ?? 0) > now;
    const listed: ListedState = { ...one, ...(!isSilenced && notSilenced), instance, remedy: remedyOf(one.kind) };
    if (before === undefined) merged.set(id, listed);
    else if (one.since <= (before.until ?? Infinity)) merged.set(id, together(before, listed));
    else {
      done.push(before);
      merged.set(id, listed);
    }
  }
  const all = [...done, ...merged.values()];
  const order = (one: ListedState): number => kindNames.indexOf(one.kind as Kind);
  return {
    states: all.filter(({ until }) => until === null).toSorted((a, b) => order(a) - order(b) || a.since - b.since),
    past: all.filter(({ until }) => until !== null).toSorted((a, b) => (b.until ?? 0) - (a.until ?? 0)),
  };
}

export const isKind = (kind: string): kind is Kind => Object.hasOwn(kinds, kind);

/** A silence holds for those who saw the state when it was said. */
function together(one: ListedState, other: ListedState): ListedState {
  const until = one.until === null || other.until === null ? null : Math.max(one.until, other.until);
  const most = (other.count ?? 0) >= (one.count ?? 0) ? other : one;
  const isStanding = (state: ListedState): boolean => state.until === null;
  const loud = [one, other].find((state) => isStanding(state) && state.silencedUntil === null);
  const { silencedUntil, silencedWhy, silencedBy } = loud ?? (isStanding(one) ? one : other);
  return {
    ...one,
    what: most.what,
    count: most.count,
    told: Math.max(one.told, other.told),
    until,
    silencedUntil,
    silencedWhy,
    silencedBy,
  };
}
