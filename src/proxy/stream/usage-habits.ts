import type { Endpoint } from "../rewrite/endpoint.ts";

/**
 * How a backend treats the usage of streams, as far as its responses have shown. In the memory of this process: what is
 * forgotten is learnt again, by one request more.
 */
export type UsageHabits = ReturnType<typeof createUsageHabits>;

/** The habits of each backend, by its name. */
export type HabitsOf = (backend: string) => UsageHabits;

export function createHabits(monotonic: () => number): HabitsOf {
  const known = new Map<string, UsageHabits>();
  return (backend) => known.getOrInsertComputed(backend, () => createUsageHabits(monotonic));
}

/** Then it is asked again: it may have been upgraded. */
const refusalMs = 60 * 60_000;

function createUsageHabits(monotonic: () => number) {
  const refusedAt = new Map<Endpoint, number>();
  const unasked = new Set<Endpoint>();
  return {
    /** It refused a request because of `stream_options`, and took the same one without. */
    refusesOptions: (endpoint: Endpoint): boolean => monotonic() - (refusedAt.get(endpoint) ?? -Infinity) < refusalMs,
    learnRefusal: (endpoint: Endpoint): void => void refusedAt.set(endpoint, monotonic()),
    /** It sends a frame of only usage although it is not asked to; the frame is then the client's. */
    sendsUnasked: (endpoint: Endpoint): boolean => unasked.has(endpoint),
    /** @param isSent whether a whole stream had such a frame, of a request that did not ask for it */
    learnUnasked(endpoint: Endpoint, isSent: boolean): void {
      if (isSent) unasked.add(endpoint);
      else unasked.delete(endpoint);
    },
  };
}
