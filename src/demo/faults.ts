import type { WallClock } from "../time/clock.ts";
import { msPerMinute } from "../time/seoul.ts";

/** The first one comes soon, so that a short visit sees one. */
const firstAfterMs = 2 * msPerMinute;
const everyMs = 40 * msPerMinute;

/** An overloaded backend, a request without a response, and a response that breaks off. */
const faults = ["refuse", "reset", "break"];

/** @returns the fault of the next request; undefined for nearly all of them */
export function createFaults(clock: WallClock): () => string | undefined {
  let dueAt = clock() + firstAfterMs;
  let faultCount = 0;
  return () => {
    if (clock() < dueAt) return undefined;
    dueAt = clock() + everyMs;
    return faults[faultCount++ % faults.length];
  };
}
