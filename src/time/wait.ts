import { setTimeout as sleep } from "node:timers/promises";

/** Resolves after `ms`, or as soon as the signal aborts. */
export async function wait(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => undefined);
}

/** The result of `work`, which goes on even if it takes longer than `ms`. @throws what `onTimeout` returns if it does */
export async function within<T>(ms: number, work: Promise<T>, onTimeout: () => Error): Promise<T> {
  const timedOut = Promise.withResolvers<never>();
  const timer = setTimeout(() => timedOut.reject(onTimeout()), ms);
  try {
    return await Promise.race([work, timedOut.promise]);
  } finally {
    clearTimeout(timer);
  }
}
