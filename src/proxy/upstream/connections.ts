// What `fetch` neither shows nor bounds of its connections (Bun 1.4.5): those that were never made, and those that are idle.

import { createConnection, isIP, isIPv6 } from "node:net";
import { createBag } from "../../runtime/bag.ts";
import type { MonotonicClock } from "../../time/clock.ts";
import { lookup } from "node:dns/promises";
import { readdir, readFile, readlink } from "node:fs/promises";

/** Opens a TCP connection and closes it again; rejects if it was refused or the signal fired first. */
export type Connect = (signal: AbortSignal) => Promise<void>;

interface ConnectTimeoutDeps {
  connect: Connect;
  /** How many requests are still connecting; undefined if that is not known. */
  countConnecting: () => Promise<number | undefined>;
  /** How many of these are others', which have no timeout here. */
  countOthers: () => number;
  limitMs: number;
  monotonic: MonotonicClock;
}

export type ConnectTimeout = ReturnType<typeof createConnectTimeout>;

type OnConnectTimeout = (isCertain: boolean) => void;

interface PendingConnect {
  since: number;
  /** How many times the upstream had sent something by then. */
  receivedBefore: number;
  onTimeout: OnConnectTimeout;
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
 *
 * Tried without counting connections. Probes beside requests are as silent when the queue is full, so they end the request
 * that the backend works on. A probe before each request without a connection, at most one a second, takes a place in that
 * queue, and misses a backend that goes silent within the second or after it closed connections that we count as idle.
 */
export function createConnectTimeout(deps: ConnectTimeoutDeps) {
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
    const [watched, receivedBefore] = [pending.size(), received];
    const counted = await deps.countConnecting().catch(() => undefined);
    // The probe connects too.
    const others = (probing ? 1 : 0) + deps.countOthers();
    const connecting = counted === undefined ? undefined : Math.max(0, counted - others);
    const isCertain =
      connecting !== undefined && connecting >= Math.max(watched, pending.size()) && received === receivedBefore;
    const now = monotonic();
    for (const request of listUnconnected(connecting)) {
      if (now - request.since < limitMs) break;
      request.onTimeout(isCertain);
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
    timer = setTimeout(() => void tick(), ms);
  };

  return {
    /**
     * Calls `onTimeout` if the upstream has not accepted a connection within the limit, with whether that is certain: a
     * request that may have one may have been sent, too.
     * @returns stops watching
     */
    watch(onTimeout: OnConnectTimeout): () => void {
      const stop = pending.add({
        since: monotonic(),
        receivedBefore: received,
        onTimeout(isCertain) {
          stop();
          onTimeout(isCertain);
        },
      });
      if (timer === undefined) startTimer(tickMs);
      return stop;
    },
    /** Called with every head and every part of a body: the upstream may have accepted connections by then. */
    onReceived(): void {
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
 * How many requests of this process are still connecting to the port of a host, or of all hosts; undefined if unknown (only
 * Linux reports it). The tables contain other processes' sockets too, so only those among our descriptors count. `fetch` may
 * connect to several addresses at once for one request.
 */
export async function countConnecting(port: number, host?: string): Promise<number | undefined> {
  const tables = await Promise.all(["/proc/self/net/tcp", "/proc/self/net/tcp6"].map(readIfThere));
  if (tables.every((table) => table === undefined)) return undefined;
  const sockets = tables.flatMap((table) => findConnecting(table ?? "", port));
  if (sockets.length === 0) return 0;
  const addresses = host === undefined ? undefined : await listAddresses(host);
  const own = await listOwnSockets();
  const perAddress = Map.groupBy(
    sockets.filter(({ address, inode }) => own.has(inode) && addresses?.has(address) !== false),
    ({ address }) => address,
  );
  return Math.max(0, ...perAddress.values().map((each) => each.length));
}

async function listAddresses(host: string): Promise<ReadonlySet<string>> {
  const found = isIP(host) === 0 ? await lookup(host, { all: true }) : [{ address: host }];
  return new Set(found.map(({ address }) => canonical(address)));
}

/** An IPv6 address has many spellings. */
const canonical = (address: string): string => (isIPv6(address) ? new URL(`http://[${address}]`).hostname : address);

/** The tables write it in words of four bytes, the last byte first. */
function parseAddress(hex: string): string {
  const bytes = Buffer.from(hex, "hex").swap32();
  return canonical(bytes.length === 4 ? bytes.join(".") : bytes.toString("hex").replaceAll(/....(?=.)/g, "$&:"));
}

/** proc_net_tcp(5): state 02 is SYN_SENT. */
function findConnecting(table: string, port: number) {
  const hexPort = port.toString(16).toUpperCase().padStart(4, "0");
  const line = new RegExp(String.raw`^ *\d+: \S+ (\w+):${hexPort} 02 \S+ \S+ \S+ +\d+ +\d+ (\d+)`, "gm");
  return [...table.matchAll(line)].map(([, address = "", inode = ""]) => ({ address: parseAddress(address), inode }));
}

/** proc_pid_fd(5): the descriptor of a socket is a link to its inode. */
async function listOwnSockets(): Promise<ReadonlySet<string>> {
  const descriptors = await readdir("/proc/self/fd");
  const targets = await Promise.all(descriptors.map((name) => readlink(`/proc/self/fd/${name}`).catch(() => "")));
  return new Set(targets.map((target) => /^socket:\[(\d+)\]$/.exec(target)?.[1] ?? ""));
}

const readIfThere = (path: string): Promise<string | undefined> => readFile(path, "utf8").catch(() => undefined);

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
