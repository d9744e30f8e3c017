import { readFileSync } from "node:fs";

/**
 * Bytes that have arrived on connections from or to this port of the machine and that no process has read yet, from
 * proc_net_tcp(5). When it is 0, everything sent to the port so far has been received.
 */
export function unreadBytes(port: number): number {
  let bytes = 0;
  for (const line of readFileSync("/proc/net/tcp", "utf8").split("\n").slice(1)) {
    const [, local, remote, state, queues] = line.trim().split(/\s+/);
    const ports = [local, remote].map((address) => Number.parseInt(address?.split(":")[1] ?? "", 16));
    if (state === established && ports.includes(port)) bytes += Number.parseInt(queues?.split(":")[1] ?? "0", 16);
  }
  return bytes;
}

const established = "01";
