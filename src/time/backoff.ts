export interface Backoff {
  /** Milliseconds to wait before the next try: doubling up to the cap, and spread, so that hosts do not come back all at once. */
  next(): number;
  reset(): void;
}

/** @param random from 0 to 1; the wait lies between half and the whole of the doubled one */
export function createBackoff(firstMs: number, capMs: number, random: () => number = Math.random): Backoff {
  let wholeMs = firstMs;
  return {
    next() {
      const waitMs = wholeMs * (0.5 + random() / 2);
      wholeMs = Math.min(capMs, wholeMs * 2);
      return waitMs;
    },
    reset() {
      wholeMs = firstMs;
    },
  };
}
