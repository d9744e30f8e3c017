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

/** Runs `work` at an interval, and when asked to, one run at a time. If it fails, the next run tries again. */
export function repeat(intervalMs: number, work: () => Promise<void>) {
  let running: Promise<void> | undefined;
  const run = (): Promise<void> =>
    (running ??= work()
      .catch(() => {})
      .finally(() => (running = undefined)));
  const timer = setInterval(() => void run(), intervalMs).unref();
  return {
    /** Resolves with the end of the run, also of one that was under way. */
    run,
    /** Resolves when none is under way. */
    idle: async (): Promise<void> => running,
    stop(): Promise<void> | undefined {
      clearInterval(timer);
      return running;
    },
  };
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
