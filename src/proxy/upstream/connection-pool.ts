import type { MonotonicClock } from "../../time/clock.ts";

/** The idle connections of `fetch`, which does not expose them. */
export interface ConnectionPool {
  /** How long the connection that the next request gets has been idle; undefined if that one is new. */
  nextIdleMs(): number | undefined;
  /** Called when a request is sent. @returns puts its connection into the pool; due at the end of the response body */
  take(): () => void;
}

/** How many idle connections Bun keeps (1.4.5). */
const places = 64;

/**
 * Follows the pool of `fetch` (Bun 1.4.5): a request takes the connection in the lowest place and leaves it in the lowest
 * free one, or, if there is none, in that of the connection that has been idle for longest. A connection that the upstream
 * closes stays here and grows older. Remove when `fetch` limits how long a connection is idle.
 */
export function createConnectionPool(clock: MonotonicClock): ConnectionPool {
  /** When the connection in each place was put there; undefined for a free place. */
  const idleSince = Array.from<number | undefined>({ length: places });
  const findNext = (): number => idleSince.findIndex((since) => since !== undefined);

  function findPlace(): number {
    const free = idleSince.indexOf(undefined);
    return free === -1 ? idleSince.indexOf(Math.min(...idleSince.map((since) => since ?? Infinity))) : free;
  }

  return {
    nextIdleMs() {
      const since = idleSince[findNext()];
      return since === undefined ? undefined : clock() - since;
    },
    take() {
      const place = findNext();
      if (place !== -1) idleSince[place] = undefined;
      return () => {
        idleSince[findPlace()] = clock();
      };
    },
  };
}

/**
 * Servers close connections that have been idle for 2 s (gunicorn) or 5 s (uvicorn, Node, llama.cpp), a busy one later;
 * others after a minute or never. Without the upper limit, no request would fill the pool again.
 */
const closingAfterMs = 1_500;
const closedAfterMs = 8_000;

/** Whether the upstream may be closing a connection at the moment at which a request is sent over it. */
export function mayBeClosing(idleMs: number | undefined): boolean {
  return idleMs !== undefined && idleMs >= closingAfterMs && idleMs < closedAfterMs;
}
