/**
 * Lets tests wait for state that changes step by step.
 * @param describe the state at the deadline, for the error message
 */
export function createChangeNotifier(deadlineMs: number, describe: () => string) {
  const checks = new Set<() => void>();
  return {
    /** Runs the check of every waiter again. */
    notify(): void {
      for (const check of checks) check();
    },
    /**
     * The first value that `find` returns, now or after a later `notify`.
     * @throws what `find` throws; Error with `what` after the deadline
     */
    waitFor: <T>(what: string, find: () => T | undefined): Promise<T> =>
      new Promise((resolve, reject) => {
        const finish = (settle: () => void): void => {
          clearTimeout(timer);
          checks.delete(check);
          settle();
        };
        const check = (): void => {
          try {
            const found = find();
            if (found !== undefined) finish(() => resolve(found));
          } catch (error) {
            finish(() => reject(error));
          }
        };
        const tooLate = () => new Error(`No ${what} within ${deadlineMs} ms; received so far: ${describe()}`);
        const timer = setTimeout(() => finish(() => reject(tooLate())), deadlineMs);
        checks.add(check);
        check();
      }),
  };
}
