import { timestampOf } from "../time/seoul.ts";
import type { ListedState } from "./states.ts";

/** What is posted. `text` is what chat programs show. */
export interface Notice {
  /** Of all notices about the same; it names this one for the receiver. */
  kind: string;
  type: "state" | "limit" | "test";
  text: string;
  states: readonly Pick<ListedState, "kind" | "object" | "what" | "remedy" | "instance" | "since" | "until">[];
}

/** Whether it was told of a state that it came, or that it went too. */
export const told = { nothing: 0, came: 1, went: 2 } as const;

/** A state that goes at once is nobody's business. */
const standsMs = 60_000;
const quietMs = 10 * 60_000;
const shown = 10;

/** Until when a state has to have begun. */
export const tellsUntil = (now: number): number => now - standsMs;

/**
 * One notice for each kind of which there is something to tell, unless there was one within ten minutes: the next then tells
 * of all together.
 * @param latest when a notice of a kind was made last
 */
export function planNotices(
  { states, past }: { states: readonly ListedState[]; past: readonly ListedState[] },
  latest: ReadonlyMap<string, number>,
  now: number,
): Notice[] {
  const came = states.filter((one) => one.told === told.nothing && isLoud(one) && one.since <= tellsUntil(now));
  const went = past.filter((one) => one.told === told.came);
  return [...Map.groupBy([...came, ...went], ({ kind }) => kind)].flatMap(([kind, all]) =>
    now - (latest.get(kind) ?? -Infinity) < quietMs ? [] : [noticeOf(kind, all)],
  );
}

const isLoud = ({ silencedUntil }: ListedState): boolean => silencedUntil === null;

export function noticeOf(kind: string, all: readonly ListedState[]): Notice {
  const states = all.slice(0, shown).map(({ kind: its, object, what, remedy, instance, since, until }) => {
    return { kind: its, object, what, remedy, instance, since, until };
  });
  const [first] = states;
  const more = all.length > 1 ? ` (and ${all.length - 1} more)` : "";
  const text =
    first === undefined
      ? ""
      : first.until === null
        ? `${first.what}${more}. ${first.remedy}`
        : `Over: ${first.what}${more}`;
  return { kind, type: "state", text, states };
}

const percentages = [100, 95, 75];

/**
 * One for the highest of these percentages of each limit that is used. Its id is the same until the limit's window ends, so
 * that it is made once.
 * @param limits those of who wants to know
 */
export function planLimitNotices(
  limits: readonly {
    id: number;
    name: string;
    limit: string;
    unit: string;
    used: number;
    most: number;
    resetsAt: number;
  }[],
): (Notice & { id: string })[] {
  return limits.flatMap(({ id, name, limit, unit, used, most, resetsAt }) => {
    const percent = percentages.find((one) => used * 100 >= one * most);
    if (percent === undefined) return [];
    const whose = `${name} has used ${percent}% of its ${unit}`;
    const text = `${whose} (${used} of ${most}), which begin anew at ${timestampOf(resetsAt)}`;
    return [{ id: `msg_limit_${id}_${limit}_${resetsAt}_${percent}`, kind: "limit", type: "limit", text, states: [] }];
  });
}
