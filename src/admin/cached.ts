import type { WallClock } from "../time/clock.ts";

/**
 * Asks `load` at most once in `forMs` and hands everybody the same answer, so that a page that is open often and a
 * probe that comes often cost no more than one.
 */
export function cached<T>(clock: WallClock, forMs: number, load: () => Promise<T>): () => Promise<T> {
  let latest: { at: number; value: Promise<T> } | undefined;
  return () => {
    if (latest === undefined || clock() - latest.at >= forMs) latest = { at: clock(), value: load() };
    return latest.value;
  };
}

/** @returns `otherwise` where `work` fails or takes longer than `deadlineMs` */
export async function answerWithin<T>(
  deadlineMs: number,
  otherwise: T,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const signal = AbortSignal.timeout(deadlineMs);
  const late = new Promise<T>((resolve) => signal.addEventListener("abort", () => resolve(otherwise)));
  return Promise.race([work(signal).catch(() => otherwise), late]);
}
