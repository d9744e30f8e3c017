import { createConnection } from "node:net";
import type { MonotonicClock } from "../../time/clock.ts";

/** Opens a TCP connection and closes it again; rejects if it was refused or the signal fired first. */
export type Connect = (signal: AbortSignal) => Promise<void>;

export interface ConnectTimeout {
  /** Calls `onTimeout` if the upstream has not accepted a connection within the limit. @returns stops watching */
  watch(onTimeout: () => void): () => void;
}

interface PendingConnect {
  since: number;
  onTimeout: () => void;
}

/** Requests that get their response head sooner need no probe. */
const probeAfterMs = 3_000;
/** A probe that stays silent is started anew, because a kernel repeats its SYN at ever longer intervals. */
const probeMs = 2_000;
const tickMs = 1_000;

/**
 * The connect timeout that `fetch` lacks (Bun 1.4.5: the kernel gives up after 134 s). Watching each connect costs more
 * than the rest of a small request, so one TCP connection is probed on behalf of all requests that wait long for a head.
 * Once it is accepted or refused, their own connects have been decided too, and only the read timeouts apply to them. As
 * long as every probe stays silent, requests that began `limitMs` ago time out. Remove when `fetch` has a connect timeout.
 */
export function createConnectTimeout(connect: Connect, limitMs: number, clock: MonotonicClock): ConnectTimeout {
  /** In the order in which they began. */
  const pending = new Set<PendingConnect>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let probing = false;

  const probe = async (): Promise<void> => {
    probing = true;
    const timeout = AbortSignal.timeout(probeMs);
    const decided = await connect(timeout).then(
      () => true,
      () => !timeout.aborted,
    );
    probing = false;
    if (decided) pending.clear();
  };

  const tick = (): void => {
    const now = clock();
    for (const request of pending) {
      if (now - request.since < limitMs) break;
      pending.delete(request);
      request.onTimeout();
    }
    const oldest = pending.values().next().value;
    if (oldest !== undefined && !probing && now - oldest.since >= probeAfterMs) void probe();
    timer = oldest && setTimeout(tick, Math.min(tickMs, oldest.since + limitMs - now));
  };

  return {
    watch(onTimeout) {
      const request = { since: clock(), onTimeout };
      pending.add(request);
      timer ??= setTimeout(tick, tickMs);
      return () => void pending.delete(request);
    },
  };
}

/** Connects to the upstream's TCP port. */
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
        reject(new Error("The connection was not accepted in time."));
      });
    });
}
