export type Backoff = ReturnType<typeof createBackoff>;

/** @param random returns 0 to 1; each wait is between half of the doubled value and all of it */
export function createBackoff(firstMs: number, capMs: number, random: () => number = Math.random) {
  let currentMs = firstMs;
  return {
    /** Milliseconds to wait before the next attempt: doubles up to the cap, with jitter. */
    next(): number {
      const waitMs = currentMs * (0.5 + random() / 2);
      currentMs = Math.min(capMs, currentMs * 2);
      return waitMs;
    },
    reset(): void {
      currentMs = firstMs;
    },
  };
}
