/** Lets at most `running` calls run at once; at most `waiting` more wait in a queue, known clients ahead of the others. */
export function createConcurrencyLimit({
  running,
  waiting,
  reserved,
}: {
  running: number;
  waiting: number;
  /** How many of all these are left to known clients. */
  reserved: number;
}): {
  hasRoom(isKnown: boolean): boolean;
  /** @returns the result of `work`, or undefined if there is no room for it; `work` has then not run */
  run<T>(isKnown: boolean, work: () => Promise<T>): Promise<T | undefined>;
} {
  let free = running;
  const knownQueue: Array<() => void> = [];
  const queue: Array<() => void> = [];

  function hasRoom(isKnown: boolean): boolean {
    const unclaimed = free + waiting - knownQueue.length - queue.length;
    return unclaimed > (isKnown ? 0 : reserved);
  }

  return {
    hasRoom,
    async run(isKnown, work) {
      if (!hasRoom(isKnown)) return undefined;
      if (free > 0) free -= 1;
      else await new Promise<void>((resolve) => (isKnown ? knownQueue : queue).push(resolve));
      try {
        return await work();
      } finally {
        // The next in the queue takes over, so that no newcomer can take it first.
        const next = knownQueue.shift() ?? queue.shift();
        if (next === undefined) free += 1;
        else next();
      }
    },
  };
}
