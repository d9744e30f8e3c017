import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** What a process holds of the machine. */
export interface Holdings {
  /** What is open and no socket: files, pipes, timers. */
  files: readonly string[];
  /** Live connections whose other end still lives too. */
  connections: number;
  /** Connections that the other end has left, kept open all the same. */
  leftBehind: number;
}

/** proc_pid_fd(5), proc_pid_net(5). */
export function holdingsOf(pid: number): Holdings {
  const links = readdirSync(`/proc/${pid}/fd`).flatMap((descriptor) => findLink(`/proc/${pid}/fd/${descriptor}`) ?? []);
  const states = tcpStates(pid);
  const tcp = links.flatMap((link) => states.get(link) ?? []);
  const connections = tcp.filter((state) => state === established).length;
  const leftBehind = tcp.filter((state) => state === closeWait).length;
  return { files: links.filter((link) => !link.startsWith("socket:")), connections, leftBehind };
}

const established = "01";
const closeWait = "08";

/** A descriptor can be closed between the listing and the look. */
function findLink(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}

/** By what a descriptor's link says. */
function tcpStates(pid: number): Map<string, string> {
  const states = new Map<string, string>();
  for (const line of readFileSync(`/proc/${pid}/net/tcp`, "utf8").split("\n").slice(1)) {
    const fields = line.trim().split(/\s+/);
    const [state, inode] = [fields[3], fields[9]];
    if (state !== undefined && inode !== undefined) states.set(`socket:[${inode}]`, state);
  }
  return states;
}
