import { readFileSync } from "node:fs";

/** proc_pid_task_children(5). */
export function childrenOf(pid: number): number[] {
  const listed = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8");
  return listed.split(" ").filter(Boolean).map(Number);
}

export const isRunning = (pid: number): boolean => {
  try {
    return !readFileSync(`/proc/${pid}/stat`, "utf8").includes(") Z ");
  } catch {
    return false;
  }
};

/** proc_net_tcp(5): the second field is the local address, state 0A is listening. */
export const listenersOn = (port: number): number =>
  readFileSync("/proc/net/tcp", "utf8")
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter(([, local, , state]) => state === "0A" && Number.parseInt(local?.split(":")[1] ?? "", 16) === port).length;
