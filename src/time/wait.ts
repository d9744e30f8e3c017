import { setTimeout as sleep } from "node:timers/promises";

/** Resolves after `ms`, or as soon as the signal aborts. */
export async function wait(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => undefined);
}
