import { readdir, readFile, readlink } from "node:fs/promises";

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
