import type { MonotonicClock } from "../../time/clock.ts";

/** Bounds each wait for the other side, and only the waits: time that a slow client takes is not the upstream's. */
export interface ReadTimeout {
  beginWait(): void;
  endWait(): void;
  /** No deadline passes any more. */
  clear(): void;
}

/** Calls `pass` when a wait has lasted `timeoutMs`. */
export type StartReadTimeout = (timeoutMs: number, onTimeout: () => void) => ReadTimeout;

interface Wait {
  dueAt: number;
  onTimeout: () => void;
}

/**
 * Deadlines that share one timer, set for the earliest of them: with one each, making and clearing timers is a good
 * part of what a small answer costs, and with one for each wait more than a frame does.
 * @param monotonic milliseconds that never jump
 */
export function createReadTimeouts(monotonic: MonotonicClock): StartReadTimeout {
  const waits = new Set<Wait>();
  let timer: Timer | undefined;
  let firesAt = Infinity;

  function arm(dueAt: number): void {
    clearTimeout(timer);
    firesAt = dueAt;
    // It may outlast the answers by far, and keeps no process alive.
    timer = setTimeout(check, dueAt - monotonic()).unref();
  }

  function check(): void {
    const now = monotonic();
    firesAt = Infinity;
    for (const wait of waits) {
      if (wait.dueAt > now) continue;
      wait.dueAt = Infinity;
      wait.onTimeout();
    }
    const next = waits.values().reduce((earliest, { dueAt }) => Math.min(earliest, dueAt), Infinity);
    if (next < firesAt) arm(next);
  }

  return (timeoutMs, onTimeout) => {
    const wait = { dueAt: Infinity, onTimeout };
    return {
      beginWait() {
        wait.dueAt = monotonic() + timeoutMs;
        waits.add(wait);
        if (wait.dueAt < firesAt) arm(wait.dueAt);
      },
      endWait() {
        wait.dueAt = Infinity;
      },
      clear() {
        waits.delete(wait);
      },
    };
  };
}
