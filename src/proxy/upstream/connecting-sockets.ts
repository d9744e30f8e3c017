import { lookup } from "node:dns/promises";
import { readdir, readFile, readlink } from "node:fs/promises";
import { isIP, isIPv4 } from "node:net";

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

/** The addresses of a host as the tables write them: words of four bytes, the last byte first. */
async function listAddresses(host: string): Promise<ReadonlySet<string>> {
  const found = isIP(host) === 0 ? await lookup(host, { all: true }) : [{ address: host }];
  return new Set(
    found.flatMap(({ address }) => {
      if (isIPv4(address)) return [hexOf(address.split(".").map(Number))];
      const words = wordsOf(address);
      return [hexOf(words.flatMap((word) => [word >> 8, word & 0xff]))];
    }),
  );
}

const hexOf = (bytes: readonly number[]): string =>
  bytes
    .map((_, at) => bytes[(at & ~3) + 3 - (at & 3)] ?? 0)
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join("")
    .toUpperCase();

/** The eight of an IPv6 address. */
function wordsOf(address: string): number[] {
  const [before = [], after] = address.split("::").map((part) => part.split(":").filter((word) => word !== ""));
  const missing = after === undefined ? 0 : 8 - before.length - after.length;
  return [...before, ...Array.from({ length: missing }, () => "0"), ...(after ?? [])].map((word) =>
    Number.parseInt(word, 16),
  );
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
