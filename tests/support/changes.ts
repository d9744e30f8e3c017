/** Lets tests wait for something that becomes so bit by bit. */
export interface Changes {
  /** Everybody who waits looks again. */
  announce: () => void;
  /**
   * What `look` finds, now or after one of the changes to come.
   * @throws what `look` throws; Error with `what` after the deadline
   */
  when: <T>(what: string, look: () => T | undefined) => Promise<T>;
}

/** @param describe what is so at the deadline, for the error's message */
export function createChanges(deadlineMs: number, describe: () => string): Changes {
  const looks = new Set<() => void>();
  return {
    announce() {
      for (const look of looks) look();
    },
    when: (what, look) =>
      new Promise((resolve, reject) => {
        const finish = (settle: () => void): void => {
          clearTimeout(timer);
          looks.delete(attempt);
          settle();
        };
        const attempt = (): void => {
          try {
            const found = look();
            if (found !== undefined) finish(() => resolve(found));
          } catch (error) {
            finish(() => reject(error));
          }
        };
        const tooLate = () => new Error(`No ${what} within ${deadlineMs} ms; came so far: ${describe()}`);
        const timer = setTimeout(() => finish(() => reject(tooLate())), deadlineMs);
        looks.add(attempt);
        attempt();
      }),
  };
}
