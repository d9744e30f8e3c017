import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** The descriptors of a process. */
export interface OpenDescriptors {
  /** Everything except sockets: files, pipes, timers. */
  files: readonly string[];
  /** Established TCP connections. */
  connections: number;
  /** TCP connections that the peer has closed and the process has not. */
  closeWait: number;
}

/** proc_pid_fd(5), proc_pid_net(5). */
export function openDescriptorsOf(pid: number): OpenDescriptors {
  const links = readdirSync(`/proc/${pid}/fd`).flatMap((descriptor) => findLink(`/proc/${pid}/fd/${descriptor}`) ?? []);
  const states = tcpStates(pid);
  const tcp = links.flatMap((link) => states.get(link) ?? []);
  return {
    files: links.filter((link) => !link.startsWith("socket:")),
    connections: tcp.filter((state) => state === established).length,
    closeWait: tcp.filter((state) => state === closeWaitState).length,
  };
}

const established = "01";
const closeWaitState = "08";

/** A descriptor may be closed after it was listed. */
function findLink(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}

/** The state of each TCP socket by the target of its descriptor's link. */
function tcpStates(pid: number): Map<string, string> {
  const states = new Map<string, string>();
  for (const line of readFileSync(`/proc/${pid}/net/tcp`, "utf8").split("\n").slice(1)) {
    const fields = line.trim().split(/\s+/);
    const [state, inode] = [fields[3], fields[9]];
    if (state !== undefined && inode !== undefined) states.set(`socket:[${inode}]`, state);
  }
  return states;
}
