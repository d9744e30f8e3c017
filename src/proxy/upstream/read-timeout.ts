import { createBag } from "../../runtime/bag.ts";
import { noProgressMs } from "./abort-reason.ts";
import type { MonotonicClock } from "../../time/clock.ts";

/** Bounds each wait for the other side, and only the waits: time that a slow client takes does not count against the upstream. */
export interface ReadTimeout {
  /**
   * @param onClientTimeout given, the wait is for a client that takes nothing of what it is sent: it may take as long as the
   * upstream may, and `noProgressMs` at least
   */
  beginWait(onClientTimeout?: () => void): void;
  endWait(): void;
  /** Ends it for good. */
  clear(): void;
}

/** Calls `onTimeout` when a wait has lasted `timeoutMs`, and `onLook` at least once in that time as long as none has. */
export type StartReadTimeout = (timeoutMs: number, onTimeout: () => void, onLook?: () => void) => ReadTimeout;

interface Wait {
  /** Infinity while the other side is not waited for. */
  dueAt: number;
  onTimeout: () => void;
  onLook: (() => void) | undefined;
}

/**
 * Read timeouts that share one timer, set for the earliest of them. One timer for each response is a good part of what a
 * small response costs, and one for each wait more than a frame does.
 */
export function createReadTimeouts(monotonic: MonotonicClock): StartReadTimeout {
  const waits = createBag<Wait>();
  let timer: Timer | undefined;
  /** Never later than the earliest `dueAt`. */
  let firesAt = Infinity;

  function arm(dueAt: number): void {
    clearTimeout(timer);
    firesAt = dueAt;
    // It may outlast the responses by far, and must not keep the process alive.
    timer = setTimeout(check, Math.max(0, dueAt - monotonic())).unref();
  }

  function check(): void {
    const now = monotonic();
    firesAt = Infinity;
    for (const wait of waits.list()) {
      const isDue = wait.dueAt <= now;
      if (isDue) wait.dueAt = Infinity;
      (isDue ? wait.onTimeout : wait.onLook)?.();
    }
    const next = waits.list().reduce((earliest, { dueAt }) => Math.min(earliest, dueAt), Infinity);
    if (next < firesAt) arm(next);
  }

  return (timeoutMs, onTimeout, onLook) => {
    const wait: Wait = { dueAt: Infinity, onTimeout, onLook };
    const remove = waits.add(wait);
    return {
      beginWait(onClientTimeout) {
        wait.onTimeout = onClientTimeout ?? onTimeout;
        wait.dueAt = monotonic() + (onClientTimeout === undefined ? timeoutMs : Math.max(timeoutMs, noProgressMs));
        if (wait.dueAt < firesAt) arm(wait.dueAt);
      },
      endWait() {
        wait.dueAt = Infinity;
      },
      clear() {
        wait.dueAt = Infinity;
        remove();
      },
    };
  };
}
