import type { WallClock } from "../../time/clock.ts";

/** Calls `load` at most once in `maxAgeMs` and shares the result, so that frequent callers cost no more than one. */
export function cached<T>(clock: WallClock, maxAgeMs: number, load: () => Promise<T>): () => Promise<T> {
  let latest: { at: number; value: Promise<T> } | undefined;
  return () => {
    if (latest === undefined || clock() - latest.at >= maxAgeMs) latest = { at: clock(), value: load() };
    return latest.value;
  };
}

/** @returns `fallback` if `work` fails or takes longer than `timeoutMs`; the signal then aborts it */
export async function withTimeout<T>(
  timeoutMs: number,
  fallback: T,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const signal = AbortSignal.timeout(timeoutMs);
  const timedOut = new Promise<T>((resolve) => signal.addEventListener("abort", () => resolve(fallback)));
  return Promise.race([work(signal).catch(() => fallback), timedOut]);
}
