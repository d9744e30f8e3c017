import { createBackoff } from "../time/backoff.ts";
import type { Config, Environment } from "../config.ts";
import type { Log } from "../log/log.ts";
import { build } from "../version.ts";
import { wait } from "../time/wait.ts";
import { type Child, startChild } from "./child.ts";
import { claimPort } from "./claim-port.ts";
import type { Addresses } from "./protocol.ts";
import { createAggregate } from "./aggregate.ts";
import type { HeartbeatLimits } from "./heartbeat.ts";

export interface SuperviseOptions {
  config: Config;
  count: number;
  /** Starts one process. */
  command: string[];
  env: Environment;
  log: Log;
  /** Lets all of them drain. */
  signal: AbortSignal;
  heartbeatLimits?: HeartbeatLimits;
}

/** Half a minute: longer than anything but a fault keeps a process from answering. */
const defaultHeartbeatLimits: HeartbeatLimits = { everyMs: 5000, mostUnanswered: 6 };
/** Between the end of a process and the start of the next in its place; it doubles while they do not last. */
const [firstRestartMs, slowestRestartMs] = [400, 10_000];
/** A process that lived this long did not end because of its start. */
const lastingMs = 10_000;
/** For what a process does after its grace, before it counts as hung. */
const afterGraceMs = 5000;

/**
 * Runs processes that share the ports, and replaces those that end, until the signal.
 * @returns the exit status: that of the first process where it cannot start, which has said why then
 * @throws ListenError where a port is taken
 */
export async function superviseProcesses(options: SuperviseOptions): Promise<number> {
  const { config, count, command, log, signal, heartbeatLimits = defaultHeartbeatLimits } = options;
  using claims = new DisposableStack();
  claimPorts(config, claims);
  const sums = createAggregate();
  const onUnresponsive = (child: Child): void => {
    log.error("A process does not answer any more and is killed", { child: child.pid });
    child.kill();
  };
  using children = createChildren((env) => startChild({ command, env, sums, heartbeatLimits, onUnresponsive }));
  signal.addEventListener("abort", () => children.stop(config.shutdownGraceMs + afterGraceMs));

  // The first one comes alone: it migrates, makes what a first start has to make, and finds the ports.
  const first = children.start(options.env);
  const at = await Promise.race([first.listening, first.exited]);
  if (typeof at === "number") return at;
  log.info("Listening", {
    proxy: `${at.url}/v1`,
    console: at.adminUrl,
    backend: config.upstream.baseUrl,
    processes: count,
    version: build.version,
  });
  const env = { ...options.env, ...portsOf(config, at) };
  const start = (): Child => children.start(env);
  const others = signal.aborted ? [] : Array.from({ length: count - 1 }, start);
  await Promise.all([first, ...others].map((child) => keepRunning(child, start, options)));
  await children.ended();
  log.info("All processes have ended");
  return 0;
}

function claimPorts({ host, port, adminPort = 0 }: Config, claims: DisposableStack): void {
  // 0 is free by its nature: the kernel gives the first process a port that nobody has.
  for (const each of [port, adminPort]) if (each !== 0) claims.use(claimPort(host, each));
}

/** Where the kernel chose a port for the first process, the others get that one. */
function portsOf({ port, adminPort }: Config, { url, adminUrl }: Addresses): Environment {
  return {
    ...(port === 0 ? { PORT: new URL(url).port } : {}),
    ...(adminPort === 0 ? { ADMIN_PORT: new URL(adminUrl).port } : {}),
  };
}

interface Children extends Disposable {
  start(env: Environment): Child;
  /** Lets all drain, and ends those that have not after `limitMs`. */
  stop(limitMs: number): void;
  ended(): Promise<unknown>;
}

/** All children that live. They do not outlive this process, however it ends: what it cannot end here notices by itself. */
function createChildren(startOne: (env: Environment) => Child): Children {
  const living = new Set<Child>();
  let limit: Timer | undefined;
  const killAll = (): void => {
    for (const child of living) child.kill();
  };
  process.on("exit", killAll);
  return {
    start(env) {
      const child = startOne(env);
      living.add(child);
      void child.exited.then(() => living.delete(child));
      return child;
    },
    stop(limitMs) {
      for (const child of living) child.stop();
      limit = setTimeout(killAll, limitMs);
    },
    ended: () => Promise.all([...living].map((child) => child.exited)),
    [Symbol.dispose]() {
      clearTimeout(limit);
      killAll();
      process.off("exit", killAll);
    },
  };
}

async function keepRunning(
  child: Child,
  start: () => Child,
  { log, signal }: Pick<SuperviseOptions, "log" | "signal">,
): Promise<void> {
  const backoff = createBackoff(firstRestartMs, slowestRestartMs);
  for (let current = child; ; current = start()) {
    const startedAt = performance.now();
    const status = await current.leaving;
    if (signal.aborted) return;
    if (performance.now() - startedAt > lastingMs) backoff.reset();
    const inMs = Math.round(backoff.next());
    // A signal from a terminal reaches the children too: the wait lets it reach this process before it replaces them.
    log.warn("A process ends, another one takes its place", { child: current.pid, status: status ?? "draining", inMs });
    await wait(inMs, signal);
    if (signal.aborted) return;
  }
}
