import type { MonotonicClock } from "../../time/clock.ts";

/** The idle connections of `fetch`, which does not expose them. */
export type ConnectionPool = ReturnType<typeof poolOf>;

/** How many idle connections Bun keeps, whatever their hosts (1.4.5). */
const poolSize = 64;

interface IdleConnections {
  /** Since when the connection in each entry is idle; undefined for a free entry. */
  since: (number | undefined)[];
  /** Where it leads to. */
  hosts: string[];
}

/**
 * Follows the pool of `fetch` (Bun 1.4.5): a request takes the connection of its host in the lowest entry and leaves it in
 * the lowest free one, or, if there is none, in that of the connection that has been idle for longest, of whichever host.
 * TLS has entries of its own. A connection that the upstream closes stays here and grows older. Remove when `fetch` limits
 * how long a connection is idle.
 * @returns the pool as the requests to one upstream see it
 */
export function createConnectionPools(clock: MonotonicClock): (baseUrl: string, socket?: string) => ConnectionPool {
  const groups = new Map<string, IdleConnections>();
  return (baseUrl, socket) => {
    const { protocol, host } = new URL(baseUrl);
    const group = socket ?? protocol;
    const idle = groups.getOrInsertComputed(group, () => ({ since: Array.from({ length: poolSize }), hosts: [] }));
    // Bun connects to the number for this name.
    return poolOf(idle, host.replace(/^localhost(?=:|$)/, "127.0.0.1"), clock);
  };
}

function poolOf({ since, hosts }: IdleConnections, host: string, clock: MonotonicClock) {
  return {
    /**
     * Called when a request is sent.
     * @param isFit asked of the connection that the request would get, if that one has been idle
     * @returns puts its connection into the pool, due at the end of the response body; undefined if that one is not fit
     */
    take(isFit?: (idleMs: number) => boolean): (() => void) | undefined {
      let next = 0;
      while (next < poolSize && (since[next] === undefined || hosts[next] !== host)) next += 1;
      const idleSince = since[next];
      if (idleSince !== undefined) {
        if (isFit?.(clock() - idleSince) === false) return undefined;
        since[next] = undefined;
      }
      return () => {
        let entry = since.indexOf(undefined);
        if (entry === -1) entry = since.indexOf(Math.min(...since.map((one) => one ?? Infinity)));
        since[entry] = clock();
        hosts[entry] = host;
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

/** Whether the upstream is not about to close a connection at the moment at which a request is sent over it. */
export const staysOpen = (idleMs: number): boolean => idleMs < closingAfterMs || idleMs >= closedAfterMs;
