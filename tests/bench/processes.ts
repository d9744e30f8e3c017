import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { pollUntil } from "../support/poll-until.ts";

/** The backend and the load generator share one core; the proxy has another one to itself. */
export const loadCore = 0;
export const proxyCore = 1;

export interface PinnedProcess {
  pid: number;
  exited: Promise<number>;
  stop(): Promise<void>;
}

export interface PinnedOptions {
  core: number;
  env?: Readonly<Record<string, string>>;
  /** For standard output; standard error goes to the same name with `.err`. */
  logFile: string;
}

/** Starts a program with all its threads pinned to one core. It is killed when the benchmark ends in any way. */
export function startPinned(command: readonly string[], { core, env = {}, logFile }: PinnedOptions): PinnedProcess {
  const child = Bun.spawn(["taskset", "-c", String(core), ...command], {
    env: { PATH: process.env["PATH"] ?? "", HOME: process.env["HOME"] ?? "", ...env },
    stdin: "ignore",
    stdout: Bun.file(logFile),
    stderr: Bun.file(`${logFile}.err`),
  });
  const kill = (): void => child.kill("SIGKILL");
  process.on("exit", kill);
  const exited = child.exited.finally(() => process.off("exit", kill));
  return {
    pid: child.pid,
    exited,
    async stop() {
      child.kill("SIGTERM");
      await Promise.race([exited, Bun.sleep(5000)]);
      kill();
      await exited;
    },
  };
}

/** Waits until the URL gets any HTTP response. */
export async function untilResponds(url: string): Promise<void> {
  await pollUntil(async () => {
    const response = await fetch(url);
    await response.bytes();
    return true;
  });
}

/** The process and its descendants, from proc_pid_task_children(5): nginx works in a child process. */
export function processTree(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8")
    .trim()
    .split(" ")
    .filter(Boolean)
    .map(Number);
  return [pid, ...children.flatMap(processTree)];
}

/** CPU time in microseconds, by the name of the thread; the main thread is `main`. */
export type ThreadCpu = Readonly<Record<string, number>>;

/** CPU time of a process and its descendants so far, user and system. */
export const cpuUs = (pid: number): number =>
  processTree(pid).reduce((sum, process) => sum + cpuOfStat(`/proc/${process}/stat`), 0);

/** How often memory of a process and its descendants was not mapped so far, read from a disk or not. */
export const pageFaults = (pid: number): number =>
  processTree(pid).reduce((sum, process) => {
    const fields = statOf(`/proc/${process}/stat`);
    return sum + fields(10) + fields(12);
  }, 0);

/** How often another thread ran in place of one of theirs so far, from proc_pid_status(5), without threads that have ended. */
export const contextSwitches = (pid: number): number =>
  processTree(pid).reduce((sum, process) => {
    const threads = readdirSync(`/proc/${process}/task`).map((thread) => `/proc/${process}/task/${thread}/status`);
    const counts = threads.flatMap((file) =>
      readFileSync(file, "utf8").match(/(?<=^(?:non)?voluntary_ctxt_switches:\s+)\d+$/gm),
    );
    return counts.reduce((total, count) => total + Number(count), sum);
  }, 0);

/**
 * Counts an event of perf-list(1) for a process from now on, by default executed instructions.
 * @returns ends it, with undefined where `perf` is not installed, or the kernel does not count such events
 */
export function countEvents(pid: number, event = "instructions"): () => Promise<number | undefined> {
  if (Bun.which("perf") === null) return async () => undefined;
  const perf = Bun.spawn(["perf", "stat", "--field-separator=,", `--event=${event}`, `--pid=${pid}`], {
    stderr: "pipe",
  });
  return async () => {
    perf.kill("SIGINT");
    const [, count] = /^(\d+),/m.exec(await new Response(perf.stderr).text()) ?? [];
    return count === undefined ? undefined : Number(count);
  };
}

/** The same by thread, without those that have ended. */
export function threadCpuUs(pid: number): ThreadCpu {
  const cpu: Record<string, number> = {};
  for (const process of processTree(pid)) {
    for (const thread of readdirSync(`/proc/${process}/task`)) {
      const file = `/proc/${process}/task/${thread}/stat`;
      const name = Number(thread) === process ? "main" : readFileSync(file, "utf8").replace(/^\d+ \((.*)\) .*$/s, "$1");
      cpu[name] = (cpu[name] ?? 0) + cpuOfStat(file);
    }
  }
  return cpu;
}

/** In microseconds; the kernel counts ticks of 10 ms on every Linux that Bun supports. */
function cpuOfStat(file: string): number {
  const fields = statOf(file);
  return (fields(14) + fields(15)) * 10_000;
}

/** The fields of proc_pid_stat(5) by the numbers that it gives them, from the third. */
function statOf(file: string): (field: number) => number {
  const stat = readFileSync(file, "utf8");
  // The second field, the command's name, may contain spaces; it ends at the last parenthesis.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (field) => Number(fields[field - 3]);
}

/** Resident memory in megabytes now, from proc_pid_status(5), or the most of it since `forgetPeaks`. */
export function residentMb(pid: number, which: "now" | "most" = "now"): number {
  const line = which === "now" ? /^VmRSS:\s+(\d+) kB$/m : /^VmHWM:\s+(\d+) kB$/m;
  return processTree(pid).reduce((sum, process) => {
    // A zombie has neither.
    const [, kilobytes = 0] = line.exec(readFileSync(`/proc/${process}/status`, "utf8")) ?? [];
    return sum + Number(kilobytes) / 1024;
  }, 0);
}

/** From proc_pid_clear_refs(5). */
export function forgetPeaks(pid: number): void {
  for (const process of processTree(pid)) writeFileSync(`/proc/${process}/clear_refs`, "5");
}

export function pinToCore(pid: number, core: number): void {
  Bun.spawnSync(["taskset", "-p", "-c", String(core), String(pid)]);
}
