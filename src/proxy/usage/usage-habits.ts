import { canonical } from "../rewrite/endpoint.ts";

/**
 * How a backend treats the usage of streams, as far as its responses have shown. In the memory of this process: what is
 * forgotten is learnt again, by one request more.
 */
export interface UsageHabits {
  /** It refused a request because of `stream_options`, and took the same one without. */
  refusesOptions(path: string): boolean;
  learnRefusal(path: string): void;
  /** It sends a frame of usage alone although nobody asks for it, which is then the client's. */
  sendsUnasked(path: string): boolean;
  /** @param isSent whether a whole stream had such a frame, of a request that did not ask for it */
  learnUnasked(path: string, isSent: boolean): void;
}

/** The habits of each backend, by its name. */
export type HabitsOf = (backend: string) => UsageHabits;

export function createHabits(monotonic: () => number): HabitsOf {
  const known = new Map<string, UsageHabits>();
  return (backend) => {
    const found = known.get(backend);
    if (found !== undefined) return found;
    const habits = createUsageHabits(monotonic);
    known.set(backend, habits);
    return habits;
  };
}

/** Then it is asked again: it may have been upgraded. */
const refusalMs = 60 * 60_000;

function createUsageHabits(monotonic: () => number): UsageHabits {
  /** By path, of which there are two. */
  const refusedAt = new Map<string, number>();
  const unasked = new Set<string>();
  return {
    refusesOptions: (path) => monotonic() - (refusedAt.get(canonical(path)) ?? -Infinity) < refusalMs,
    learnRefusal: (path) => void refusedAt.set(canonical(path), monotonic()),
    sendsUnasked: (path) => unasked.has(canonical(path)),
    learnUnasked(path, isSent) {
      if (isSent) unasked.add(canonical(path));
      else unasked.delete(canonical(path));
    },
  };
}
