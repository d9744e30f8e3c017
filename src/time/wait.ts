import { setTimeout as sleep } from "node:timers/promises";

/** Resolves after `ms`, or as soon as the signal aborts. */
export async function wait(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => undefined);
}

/** Why it failed that nobody answered. */
export const noResponse = "no response in time";

/** The result of `work`, which goes on even if it takes longer than `ms`. @throws what `onTimeout` returns if it does */
export async function within<T>(ms: number, work: Promise<T>, onTimeout = () => new Error(noResponse)): Promise<T> {
  const timedOut = Promise.withResolvers<never>();
  const timer = setTimeout(() => timedOut.reject(onTimeout()), ms);
  try {
    return await Promise.race([work, timedOut.promise]);
  } finally {
    clearTimeout(timer);
  }
}

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
