import { readFileSync } from "node:fs";
import { builtProgram } from "./built-program.ts";
import { findFreePort } from "./free-port.ts";
import { createTempFolder } from "./temp-folder.ts";
import { pollUntil } from "./poll-until.ts";

export type ProgramEnvironment = Readonly<Record<string, string>>;

export interface Program {
  pid: number;
  /** Origin of `/v1`. */
  url: string;
  /** Origin of `/api` and the console; the same one unless ADMIN_PORT is set. */
  adminUrl: string;
  dataDir: string;
  stdout: () => string;
  stderr: () => string;
  /** The exit status; 128 plus the signal's number if a signal ended it. */
  exited: Promise<number>;
  /** @returns the exit status */
  stop: (signal?: NodeJS.Signals) => Promise<number>;
  /** Resident memory. */
  rssBytes: () => number;
  /** CPU time used so far, user and system. */
  cpuMs: () => number;
}

export interface FinishedProgram {
  status: number;
  stdout: string;
  stderr: string;
}

/** Lets a program end with the process that started it, which after a failed test is nothing else that ends it. */
const withParent =
  process.platform === "linux" && Bun.which("setpriv") !== null ? ["setpriv", "--pdeathsig", "KILL"] : [];

export const commandLine = (args: readonly string[]): string[] => [builtProgram(), ...args];

/** Without the developer's settings, colours and home folder. */
function cleanEnvironment(environment: ProgramEnvironment, dataDir: string): ProgramEnvironment {
  return { PATH: process.env["PATH"] ?? "", HOME: dataDir, DATA_DIR: dataDir, ...environment };
}

/** Runs a command to its end. */
export async function runProgram(
  args: readonly string[],
  environment: ProgramEnvironment = {},
  { stdin = "", cwd }: { stdin?: string; cwd?: string } = {},
): Promise<FinishedProgram> {
  using folder = createTempFolder();
  const child = Bun.spawn(commandLine(args), {
    cwd: cwd ?? folder.path,
    env: cleanEnvironment(environment, folder.path),
    stdin: Buffer.from(stdin),
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr, status] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { status, stdout, stderr };
}

/**
 * Starts `serve`, or the command in `args`, or all of `command`, on free ports with an empty data folder, and waits until it responds.
 * It is killed when the test process ends.
 * @throws Error with its output if it exits before it is ready
 */
export async function startProgram(
  environment: ProgramEnvironment = {},
  args: readonly string[] = ["serve"],
  command: readonly string[] = commandLine(args),
): Promise<Program> {
  const folder = createTempFolder();
  const port = environment["PORT"] ?? String(findFreePort());
  const dataDir = environment["DATA_DIR"] ?? folder.path;
  const child = Bun.spawn([...withParent, ...command], {
    cwd: folder.path,
    env: cleanEnvironment({ PORT: port, ...environment }, dataDir),
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const stdout = collect(child.stdout);
  const stderr = collect(child.stderr);
  const exited = child.exited.then((status) => {
    folder.remove();
    return status;
  });
  const scheme = environment["TLS_CERT"] === undefined ? "http" : "https";
  const program: Program = {
    pid: child.pid,
    url: `${scheme}://127.0.0.1:${port}`,
    adminUrl: `${scheme}://127.0.0.1:${environment["ADMIN_PORT"] ?? port}`,
    dataDir,
    stdout,
    stderr,
    exited,
    stop(signal = "SIGTERM") {
      child.kill(signal);
      return exited;
    },
    rssBytes: () => residentBytes(child.pid),
    cpuMs: () => processorMs(child.pid),
  };
  try {
    await pollUntil(
      async () => child.exitCode !== null || child.signalCode !== null || (await isUp(program, environment)),
    );
  } catch (error) {
    child.kill("SIGKILL");
    throw error;
  }
  if (child.exitCode !== null || child.signalCode !== null) {
    throw new Error(`The program exited with ${await exited}:\n${stderr()}${stdout()}`);
  }
  return program;
}

async function isUp({ adminUrl }: Program, { HOST = "", ADMIN_PORT }: ProgramEnvironment): Promise<boolean> {
  const unix = HOST.startsWith("unix:") && ADMIN_PORT === undefined ? { unix: HOST.slice("unix:".length) } : {};
  // Only tests of TLS compare certificates.
  return (await fetch(`${adminUrl}/healthz`, { tls: { rejectUnauthorized: false }, ...unix })).ok;
}

function collect(stream: ReadableStream<Uint8Array>): () => string {
  let text = "";
  const decoder = new TextDecoder();
  void (async () => {
    for await (const bytes of stream) text += decoder.decode(bytes, { stream: true });
  })();
  return () => text;
}

/** proc_pid_status(5). */
function residentBytes(pid: number): number {
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kilobytes) * 1024;
}

/** proc_pid_stat(5): user and system time are fields 14 and 15, in ticks of 10 ms on every Linux that Bun supports. */
function processorMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The second field, the command's name, may contain spaces; it ends at the last parenthesis.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
}
