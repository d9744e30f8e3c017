import { createConnection } from "node:net";
import { createBag } from "../../runtime/bag.ts";
import type { MonotonicClock } from "../../time/clock.ts";
import { readdir, readFile, readlink } from "node:fs/promises";

/** Opens a TCP connection and closes it again; rejects if it was refused or the signal fired first. */
export type Connect = (signal: AbortSignal) => Promise<void>;

interface ConnectTimeoutDeps {
  connect: Connect;
  /** How many requests are still connecting; undefined if that is not known. */
  countConnecting: () => Promise<number | undefined>;
  limitMs: number;
  monotonic: MonotonicClock;
}

export interface ConnectTimeout {
  /** Calls `onTimeout` if the upstream has not accepted a connection within the limit. @returns stops watching */
  watch(onTimeout: () => void): () => void;
  /** Called with every head and every part of a body: the upstream may have accepted connections by then. */
  onReceived(): void;
}

interface PendingConnect {
  since: number;
  /** How many times the upstream had sent something by then. */
  receivedBefore: number;
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
 * long as every probe stays silent, requests that began `limitMs` ago and have no connection time out. Remove when `fetch`
 * has a connect timeout.
 */
export function createConnectTimeout(deps: ConnectTimeoutDeps): ConnectTimeout {
  const { limitMs, monotonic } = deps;
  const pending = createBag<PendingConnect>();
  const oldestFirst = (): PendingConnect[] => pending.list().toSorted((a, b) => a.since - b.since);
  let timer: ReturnType<typeof setTimeout> | undefined;
  let probing = false;
  let received = 0;

  const probe = async (): Promise<void> => {
    probing = true;
    const timeout = AbortSignal.timeout(probeMs);
    const decided = await deps.connect(timeout).then(
      () => true,
      () => !timeout.aborted,
    );
    probing = false;
    if (decided) pending.clear();
  };

  /**
   * A full queue holds the connections that came first, so the oldest requests have theirs. That is uncertain once the
   * upstream has sent something, because it may have accepted others since: then either all time out or none.
   */
  const listUnconnected = (connecting: number | undefined): PendingConnect[] => {
    const requests = oldestFirst();
    if (connecting !== undefined && connecting >= requests.length) return requests;
    if (requests[0]?.receivedBefore !== received) return [];
    return connecting === undefined ? requests : requests.slice(requests.length - connecting);
  };

  const timeOut = async (): Promise<void> => {
    const counted = await deps.countConnecting().catch(() => undefined);
    // The probe connects too.
    const connecting = counted === undefined ? undefined : Math.max(0, counted - (probing ? 1 : 0));
    const now = monotonic();
    for (const request of listUnconnected(connecting)) {
      if (now - request.since < limitMs) break;
      request.onTimeout();
    }
  };

  const tick = async (): Promise<void> => {
    const now = monotonic();
    const [oldest] = oldestFirst();
    if (oldest !== undefined && now - oldest.since >= limitMs) await timeOut();
    if (oldest !== undefined && !probing && now - oldest.since >= probeAfterMs) void probe();
    const nextDue = oldestFirst().find(({ since }) => now - since < limitMs);
    timer = undefined;
    if (pending.size() > 0) startTimer(Math.min(tickMs, (nextDue?.since ?? now) + limitMs - now));
  };

  const startTimer = (ms: number): void => {
    timer ??= setTimeout(() => void tick(), ms);
  };

  return {
    watch(onTimeout) {
      const stop = pending.add({
        since: monotonic(),
        receivedBefore: received,
        onTimeout() {
          stop();
          onTimeout();
        },
      });
      startTimer(tickMs);
      return stop;
    },
    onReceived() {
      received += 1;
    },
  };
}

type Address = { host: string; port: number } | { path: string };

/** @param socket the path of a UNIX socket, if the upstream listens on one */
export function addressOf(upstreamUrl: string, socket?: string): Address {
  if (socket !== undefined) return { path: socket };
  const { hostname, port, protocol } = new URL(upstreamUrl);
  // Brackets belong to the URL, not to the IPv6 address.
  return { host: hostname.replace(/^\[|\]$/g, ""), port: Number(port) || (protocol === "https:" ? 443 : 80) };
}

export function connectTo(address: Address): Connect {
  return (signal) =>
    new Promise((resolve, reject) => {
      const socket = createConnection(address, () => {
        socket.destroy();
        resolve();
      });
      socket.once("error", reject);
      signal.addEventListener("abort", () => {
        socket.destroy();
        reject(signal.reason as Error);
      });
    });
}

/**
 * How many requests of this process are still connecting to the port; undefined if unknown (only Linux reports it). The
 * tables contain other processes' sockets too, so only those among our descriptors count. `fetch` may connect to several
 * addresses at once for one request.
 */
export async function countConnecting(port: number): Promise<number | undefined> {
  const tables = await Promise.all(["/proc/self/net/tcp", "/proc/self/net/tcp6"].map(readIfThere));
  if (tables.every((table) => table === undefined)) return undefined;
  const sockets = tables.flatMap((table) => findConnecting(table ?? "", port));
  if (sockets.length === 0) return 0;
  const own = await listOwnSockets();
  const perAddress = Map.groupBy(
    sockets.filter(({ inode }) => own.has(inode)),
    ({ address }) => address,
  );
  return Math.max(0, ...perAddress.values().map((each) => each.length));
}

interface ConnectingSocket {
  /** Where it connects to. */
  address: string;
  inode: string;
}

/** proc_net_tcp(5): state 02 is SYN_SENT. */
function findConnecting(table: string, port: number): ConnectingSocket[] {
  const hexPort = port.toString(16).toUpperCase().padStart(4, "0");
  const line = new RegExp(String.raw`^ *\d+: \S+ (\w+):${hexPort} 02 \S+ \S+ \S+ +\d+ +\d+ (\d+)`, "gm");
  return [...table.matchAll(line)].map(([, address = "", inode = ""]) => ({ address, inode }));
}

/** proc_pid_fd(5): the descriptor of a socket is a link to its inode. */
async function listOwnSockets(): Promise<ReadonlySet<string>> {
  const descriptors = await readdir("/proc/self/fd");
  const targets = await Promise.all(descriptors.map((name) => readlink(`/proc/self/fd/${name}`).catch(() => "")));
  return new Set(targets.map((target) => /^socket:\[(\d+)\]$/.exec(target)?.[1] ?? ""));
}

const readIfThere = (path: string): Promise<string | undefined> => readFile(path, "utf8").catch(() => undefined);

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

  function findNext(): number {
    for (let place = 0; place < places; place++) if (idleSince[place] !== undefined) return place;
    return -1;
  }

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
