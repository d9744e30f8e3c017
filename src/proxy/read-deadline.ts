import type { Clock } from "../clock.ts";

/** Bounds each wait for the upstream, and only the waits: time that a slow client takes is not the upstream's. */
export interface ReadDeadline {
  beginWait(): void;
  endWait(): void;
  /** No deadline passes any more. */
  clear(): void;
}

/** @param monotonic milliseconds that never jump */
export function createReadDeadline(timeoutMs: number, pass: () => void, monotonic: Clock): ReadDeadline {
  let waitingSince: number | undefined;
  // One timer for the whole answer, armed again when it finds that a wait began later: a timer a frame would cost more than the frame.
  let timer: ReturnType<typeof setTimeout> | undefined;

  const check = (): void => {
    timer = undefined;
    if (waitingSince === undefined) return;
    const leftMs = waitingSince + timeoutMs - monotonic();
    if (leftMs <= 0) pass();
    else timer = setTimeout(check, leftMs);
  };

  return {
    beginWait() {
      waitingSince = monotonic();
      timer ??= setTimeout(check, timeoutMs);
    },
    endWait() {
      waitingSince = undefined;
    },
    clear() {
      waitingSince = undefined;
      clearTimeout(timer);
    },
  };
}
