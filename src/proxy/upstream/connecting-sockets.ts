import { lookup } from "node:dns/promises";
import { readdir, readFile, readlink } from "node:fs/promises";
import { isIP, isIPv6 } from "node:net";

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
function findConnecting(
  table: string,
  port: number,
): {
  /** Where it connects to. */
  address: string;
  inode: string;
}[] {
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
