import type { LoggedRequest, RequestTail } from "../../store/requests/contract.ts";

/** Rows become visible when their transaction commits, which may be after rows with higher ids. */
const overlapPolls = 3;
/** More would make each event long; a view that is resumed then misses those that become visible late. */
const maxSeen = 100;

/** What a view of the log has seen: nothing above the first id but the others. */
export interface Seen {
  from: number;
  seen: readonly number[];
}

export interface News {
  /** Above this id, rows are to be read. */
  readFrom: () => number;
  of(tail: RequestTail): { rows: LoggedRequest[]; missed: number };
  /** The id of an event, after which a view can be resumed. */
  eventId(): string;
}

/** A row that was corrected is news again. */
const versionOf = ({ durationMs }: LoggedRequest): number => durationMs;

/** Reads some rows again, and passes each on once. */
export function createNews({ from, seen: seenBefore }: Seen): News {
  /** The highest ids after the last polls, the oldest first. */
  const highest = [from];
  /** The version of each, if it is known. */
  let seen = new Map<number, number | undefined>(seenBefore.map((id) => [id, undefined]));
  const readFrom = (): number => highest[0] ?? from;
  const isFresh = (request: LoggedRequest): boolean =>
    !seen.has(request.id) || (seen.get(request.id) ?? versionOf(request)) !== versionOf(request);

  return {
    readFrom,
    of({ requests, leftOut, lastId: end }) {
      const fresh = requests.filter(isFresh);
      const firstId = requests[0]?.id ?? 0;
      const leftOutBefore = leftOut === 0 ? 0 : [...seen.keys()].filter((id) => id < firstId).length;
      // What was seen may be deleted meanwhile.
      const missed = Math.max(0, leftOut - leftOutBefore);
      // Also past rows that do not match: else a filter that nothing matches would read all of them again and again.
      const last = Math.max(highest.at(-1) ?? from, requests.at(-1)?.id ?? 0, end);
      // Which ones were missed is not known, so the next poll must not count them again.
      if (missed > 0) highest.length = 0;
      highest.push(last);
      if (highest.length > overlapPolls) highest.shift();
      for (const request of fresh) seen.set(request.id, versionOf(request));
      seen = new Map([...seen].filter(([id]) => id > readFrom()));
      return { rows: fresh, missed };
    },
    eventId() {
      const ids = seen.size > maxSeen ? [] : [...seen.keys()];
      const start = seen.size > maxSeen ? (highest.at(-1) ?? from) : readFrom();
      return [start, ...ids.map((id) => id - start)].join(".");
    },
  };
}

/** @param eventId as a client sends it back; undefined if it is none of ours */
export function seenOf(eventId: string | null): Seen | undefined {
  if (eventId === null || !/^\d{1,15}(\.\d{1,15}){0,100}$/.test(eventId)) return undefined;
  const [from = 0, ...seen] = eventId.split(".").map(Number);
  return { from, seen: seen.map((distance) => from + distance) };
}
