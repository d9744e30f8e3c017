export interface ConcurrencyLimits {
  running: number;
  waiting: number;
  /** How many of all these places are left to known clients. */
  reserved: number;
}

export interface ConcurrencyLimit {
  hasPlace(isKnown: boolean): boolean;
  /** @returns the result of `work`, or undefined if there is no place for it; `work` has then not run */
  run<T>(isKnown: boolean, work: () => Promise<T>): Promise<T | undefined>;
}

/** Lets at most `running` calls run at once; at most `waiting` more wait in a queue, known clients ahead of the others. */
export function createConcurrencyLimit({ running, waiting, reserved }: ConcurrencyLimits): ConcurrencyLimit {
  let free = running;
  const knownQueue: Array<() => void> = [];
  const queue: Array<() => void> = [];

  function hasPlace(isKnown: boolean): boolean {
    const places = free + waiting - knownQueue.length - queue.length;
    return places > (isKnown ? 0 : reserved);
  }

  return {
    hasPlace,
    async run(isKnown, work) {
      if (!hasPlace(isKnown)) return undefined;
      if (free > 0) free -= 1;
      else await new Promise<void>((resolve) => (isKnown ? knownQueue : queue).push(resolve));
      try {
        return await work();
      } finally {
        // The next in the queue takes this place over, so that no newcomer can take it first.
        const next = knownQueue.shift() ?? queue.shift();
        if (next === undefined) free += 1;
        else next();
      }
    },
  };
}
