import { ProxyError } from "../errors.ts";
import type { Places } from "../../domain/admissions.ts";
import type { MonotonicClock } from "../../time/clock.ts";
import type { EndWait, Patience } from "./waiting-list.ts";

export interface PatienceOptions {
  places: Pick<Places, "isAnyIn" | "onChanged">;
  /** How long it waits for a place; 0: not at all. */
  timeoutMs: number;
  /** How long it waits until a backend is in; 0: not at all. */
  backendWaitMs: number;
  monotonic: MonotonicClock;
}

/** It ends at one time where a backend of the model is in, and at another where none is. */
export function createPatience(
  candidates: readonly string[],
  { places, timeoutMs, backendWaitMs, monotonic }: PatienceOptions,
): Patience {
  let placeUntil = monotonic() + timeoutMs;
  let backendUntil: number | undefined;
  let wasOut = false;

  function look(end: EndWait, onOut: () => void): Timer {
    const now = monotonic();
    const isOut = !places.isAnyIn(candidates);
    if (isOut) backendUntil ??= now + backendWaitMs;
    else if (wasOut) placeUntil = Math.max(placeUntil, now + timeoutMs);
    wasOut = isOut;
    if (isOut) onOut();
    // Those that have waited for a backend come to it one by one.
    const until = isOut ? (backendUntil ?? now) : Math.max(placeUntil, backendUntil ?? 0);
    const tooLate = (): void => end(new ProxyError(isOut ? "backend_unavailable" : "queue_timeout"));
    return setTimeout(tooLate, Math.max(0, until - now));
  }

  return {
    begin(end, onOut) {
      let timer = look(end, onOut);
      const stopListening = places.onChanged(() => {
        clearTimeout(timer);
        timer = look(end, onOut);
      });
      return () => {
        clearTimeout(timer);
        stopListening();
      };
    },
  };
}
