/** @returns what `work` gave, or undefined where too many wait already and it was not begun */
export type ConcurrencyLimit = <T>(work: () => Promise<T>) => Promise<T | undefined>;

/** Lets `running` pieces of work go on at once and `waiting` more stand in line. */
export function createConcurrencyLimit({ running, waiting }: { running: number; waiting: number }): ConcurrencyLimit {
  let free = running;
  const line: Array<() => void> = [];

  return async (work) => {
    if (free === 0 && line.length >= waiting) return undefined;
    if (free > 0) free -= 1;
    else await new Promise<void>((resolve) => line.push(resolve));
    try {
      return await work();
    } finally {
      // Who is next in line takes the place over, so that nobody can slip in between.
      const next = line.shift();
      if (next === undefined) free += 1;
      else next();
    }
  };
}
