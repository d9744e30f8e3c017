import type { WallClock } from "../time/clock.ts";
import { msPerMinute } from "../time/seoul.ts";

/** The first one comes soon, so that a short visit sees one. */
const firstAfterMs = 2 * msPerMinute;
const everyMs = 40 * msPerMinute;

/** Values of the backend's `x-simulate`: an overloaded backend, a refused request, a response that breaks off. */
const scripts = ["status=503", "reset-before-head", "die-mid-frame@1"];

/** @returns the fault of the next request; undefined for nearly all of them */
export function createFaults(clock: WallClock): () => string | undefined {
  let dueAt = clock() + firstAfterMs;
  let faultCount = 0;
  return () => {
    if (clock() < dueAt) return undefined;
    dueAt = clock() + everyMs;
    return scripts[faultCount++ % scripts.length];
  };
}
