/** @returns the result of `work`, or undefined if too many callers wait already; `work` has then not run */
export type ConcurrencyLimit = <T>(work: () => Promise<T>) => Promise<T | undefined>;

/** Lets at most `running` calls run at once; at most `waiting` more wait in a queue. */
export function createConcurrencyLimit({ running, waiting }: { running: number; waiting: number }): ConcurrencyLimit {
  let free = running;
  const queue: Array<() => void> = [];

  return async (work) => {
    if (free === 0 && queue.length >= waiting) return undefined;
    if (free > 0) free -= 1;
    else await new Promise<void>((resolve) => queue.push(resolve));
    try {
      return await work();
    } finally {
      // The next in the queue takes this place over, so that no newcomer can take it first.
      const next = queue.shift();
      if (next === undefined) free += 1;
      else next();
    }
  };
}
