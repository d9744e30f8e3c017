import { createConnection } from "node:net";
import type { MonotonicClock } from "../../time/clock.ts";

/** Opens a TCP connection and closes it again; rejects where it was refused or the signal fired first. */
export type Connect = (signal: AbortSignal) => Promise<void>;

export interface ConnectTimeout {
  /** Calls `giveUp` when the upstream has not taken a connection within the limit. @returns ends the watch */
  watch(onTimeout: () => void): () => void;
}

interface PendingConnect {
  since: number;
  onTimeout: () => void;
}

/** Requests whose head comes sooner need no trial. */
const probeAfterMs = 3_000;
/** A trial that stays silent is begun anew, since a kernel repeats its SYN at ever longer intervals. */
const probeMs = 2_000;
const tickMs = 1_000;

/**
 * The connect timeout of `fetch`, which has none of its own (Bun 1.4.5: the kernel gives up after 134 s). Watching each
 * connect costs more than the rest of a small request, so one TCP connection is tried beside all the requests that wait
 * long for a head. Once it stands, or is refused, their own connects have been decided too, and they are left to the
 * read timeouts for good; as long as every trial stays silent, those that began `limitMs` ago are given up.
 * Remove when `fetch` has a connect timeout.
 */
export function createConnectTimeout(connect: Connect, limitMs: number, clock: MonotonicClock): ConnectTimeout {
  const waiting = new Set<PendingConnect>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let trying = false;

  const tryConnection = async (): Promise<void> => {
    trying = true;
    const deadline = AbortSignal.timeout(probeMs);
    const decided = await connect(deadline).then(
      () => true,
      () => !deadline.aborted,
    );
    trying = false;
    if (decided) waiting.clear();
  };

  const tick = (): void => {
    const now = clock();
    for (const one of waiting) {
      if (now - one.since < limitMs) break;
      waiting.delete(one);
      one.onTimeout();
    }
    const oldest = waiting.values().next().value;
    if (oldest !== undefined && !trying && now - oldest.since >= probeAfterMs) void tryConnection();
    timer = oldest && setTimeout(tick, Math.min(tickMs, oldest.since + limitMs - now));
  };

  return {
    watch(onTimeout) {
      const one = { since: clock(), onTimeout };
      waiting.add(one);
      timer ??= setTimeout(tick, tickMs);
      return () => void waiting.delete(one);
    },
  };
}

/** Tries the upstream's TCP port. */
export function connectTo(upstreamUrl: string): Connect {
  const { hostname, port, protocol } = new URL(upstreamUrl);
  // Brackets belong to the URL, not to the IPv6 address.
  const host = hostname.replace(/^\[|\]$/g, "");
  return (signal) =>
    new Promise((resolve, reject) => {
      const socket = createConnection({ host, port: Number(port) || (protocol === "https:" ? 443 : 80) }, () => {
        socket.destroy();
        resolve();
      });
      socket.once("error", reject);
      signal.addEventListener("abort", () => {
        socket.destroy();
        reject(new Error("The connection did not come about in time."));
      });
    });
}
