// `PROCESSES`: a parent, and children that serve and share its ports. A child that exits or hangs is replaced.
//
//   child: starting -> listening -> draining -> exited; killed if it does not answer pings while it listens
//
// It keeps true: what there is once for the machine is the parent's: the places at backends, with their line and health
// (`routing`), the catalog, and the sums of metrics, in which the counters of an exited child stay. A child waits for
// no reply of a silent parent: it chooses a backend by what it knows itself (`shared-places.ts`).
// The parent opens no database and sees no body: a request is a ticket to it. `protocol.ts` is all that they say.

import type { Config, Environment } from "../config/config.ts";
import { type Catalog, type CurrentCatalog, listBackends } from "../domain/models.ts";
import type { Log } from "../log/log.ts";
import { build } from "../config/version.ts";
import { createDispatch } from "../routing/dispatch.ts";
import type { ProbeBackend } from "../routing/backend-health.ts";
import { createAggregate } from "./aggregate.ts";
import { type Child, startChild } from "./child.ts";
import type { HeartbeatLimits } from "./heartbeat.ts";
import type { Addresses, MachineFacts } from "./protocol.ts";
import { createRefusalLimit } from "../telemetry/observers.ts";
import { listenError } from "../runtime/listen.ts";
import { createBackoff, wait } from "../time/wait.ts";

/** Half a minute: only a fault keeps a process from replying for that long. */
const defaultHeartbeatLimits: HeartbeatLimits = { intervalMs: 5000, maxMissed: 6 };
/** So many replacements are remembered. */
const maxReplaced = 10;
/** Time after the grace period to write counts and clean up, before a process is killed. */
const cleanupMs = 15_000;
/** The exit statuses of a process that may have lost counts if it accepted requests: its own, and that of SIGKILL. */
const lossStatuses: ReadonlySet<number> = new Set([1, 128 + 9]);

/**
 * Runs processes that share the ports, and replaces those that exit, until the signal aborts.
 * @returns the exit status: 0, 1 if a process lost counts when it stopped, or that of the first process if it fails to
 * start; it has then reported the reason
 * @throws ListenError if a port is in use
 */
export async function superviseProcesses(options: {
  config: Pick<Config, "listen" | "queue" | "shutdownGraceMs">;
  catalog: CurrentCatalog;
  probe: ProbeBackend;
  /** Number of processes. */
  count: number;
  /** Command line of one process. */
  command: string[];
  env: Environment;
  log: Log;
  /** Stops all processes gracefully. */
  signal: AbortSignal;
  heartbeatLimits?: HeartbeatLimits;
}): Promise<number> {
  const { config, catalog, count, command, log, signal, heartbeatLimits = defaultHeartbeatLimits } = options;
  using claims = new DisposableStack();
  claimPorts(config.listen, claims);
  const aggregate = createAggregate();
  using dispatch = createDispatch({
    ...config.queue,
    ...options,
    received: aggregate.running,
    clock: Date.now,
    monotonic: performance.now.bind(performance),
    onChanged: (shut) => children.backendsChanged(shut),
  });
  const mayLogRefused = createRefusalLimit(Date.now);
  let replaced: number[] = [];
  const machine = (): MachineFacts => ({ replaced, ...(catalog.faults && { modelsFile: catalog.faults() }) });
  const onUnresponsive = (child: number): void => log.error("Worker process unresponsive; killing it", { child });
  const shared = { command, aggregate, dispatch, catalog: catalog.get, mayLogRefused, machine, heartbeatLimits };
  using children = createChildren((env) => startChild({ ...shared, env, onUnresponsive }));
  catalog.onReplaced(children.catalogReplaced);
  signal.addEventListener("abort", () => children.stop(config.shutdownGraceMs + cleanupMs));

  // It may have come while the program was loaded.
  if (signal.aborted) return 0;
  // The first process starts before the others: it migrates the database, creates the password, and opens the ports.
  const first = children.start(options.env);
  const at = await Promise.race([first.listening, first.exited]);
  if (typeof at === "number") return at;
  log.info("Listening", {
    proxy: `${at.url}/v1`,
    console: at.adminUrl,
    backend: listBackends(catalog.get()),
    processes: count,
    version: build.version,
  });
  const env = { ...options.env, ...portsOf(config.listen, at) };
  const start = (): Child => children.start(env);
  const others = signal.aborted ? [] : Array.from({ length: count - 1 }, start);
  const replace = (): Child => {
    replaced = [...replaced, Date.now()].slice(-maxReplaced);
    return start();
  };
  await Promise.all([first, ...others].map((child) => keepRunning(child, replace, options)));
  const haveLostCounts = await children.haveLostCounts();
  log.info("All worker processes exited");
  return haveLostCounts ? 1 : 0;
}

function claimPorts({ host, port, adminHost, adminPort = 0 }: Config["listen"], claims: DisposableStack): void {
  // Port 0 needs no claim: the kernel assigns a free port to the first process.
  if (port !== 0) claims.use(claimPort(host, port));
  if (adminPort !== 0) claims.use(claimPort(adminHost, adminPort));
}

/** If the kernel chose a port for the first process, the other processes share that port. */
function portsOf({ port, adminPort }: Config["listen"], { url, adminUrl }: Addresses): Environment {
  return {
    ...(port === 0 ? { PORT: new URL(url).port } : {}),
    ...(adminPort === 0 ? { ADMIN_PORT: new URL(adminUrl).port } : {}),
  };
}

/**
 * The running processes. They are killed when this process exits; if it is killed itself, they notice the closed channel
 * and stop.
 */
function createChildren(startOne: (env: Environment) => Child) {
  const running = new Set<Child>();
  let stopped: Child[] = [];
  let limit: Timer | undefined;
  const killAll = (): void => {
    for (const child of running) child.kill();
  };
  process.on("exit", killAll);
  return {
    start(env: Environment): Child {
      const child = startOne(env);
      running.add(child);
      void child.exited.then(() => running.delete(child));
      return child;
    },
    backendsChanged(shut: string[]): void {
      for (const child of running) if (child.hasListened()) child.backendsChanged(shut);
    },
    // Also for those that start: one may have asked for the catalog just before.
    catalogReplaced(catalog: Catalog): void {
      for (const child of running) child.catalogReplaced(catalog);
    },
    /** Requests a drain of all processes, and kills those that still run after `limitMs`. */
    stop(limitMs: number): void {
      stopped = [...running];
      for (const child of running) child.stop();
      limit = setTimeout(killAll, limitMs);
    },
    /** Waits until those that ran when the stop was requested have exited. @returns whether one may have lost counts */
    async haveLostCounts(): Promise<boolean> {
      const lost = await Promise.all(
        stopped.map(async (child) => lossStatuses.has(await child.exited) && child.hasListened()),
      );
      return lost.includes(true);
    },
    [Symbol.dispose]() {
      clearTimeout(limit);
      killAll();
      process.off("exit", killAll);
    },
  };
}

/**
 * Reserves a port for the processes that will share it. Without this, the kernel lets any other program of the same user
 * share the port too, and a second copy of Tollgate would silently take half the connections. Linux only.
 * @throws ListenError if the port is in use
 */
export function claimPort(host: string, port: number): Disposable {
  try {
    // An abstract socket name: the kernel frees it when this process exits, and scopes it to the network namespace,
    // as it does with the port.
    const hash = new Bun.CryptoHasher("sha256").update(`${host} ${port}`).digest("hex");
    const name = Bun.listen({ unix: `\0tollgate-${hash}`, socket: { data() {} } });
    try {
      Bun.listen({ hostname: host, port, exclusive: true, socket: { data() {} } }).stop(true);
    } catch (error) {
      name.stop(true);
      throw error;
    }
    return { [Symbol.dispose]: () => name.stop(true) };
  } catch (error) {
    throw listenError(error, host, port);
  }
}

/** Delay before a replacement starts; it doubles while the replacements are short-lived. */
const [firstRestartMs, slowestRestartMs] = [400, 10_000];
/** A process that ran this long did not fail at startup. */
const stableMs = 10_000;

type Leaving = Pick<Child, "pid" | "leaving">;

/** Replaces a process, and each replacement, when it leaves, until the signal aborts. */
export async function keepRunning(
  child: Leaving,
  start: () => Leaving,
  { log, signal }: { log: Log; signal: AbortSignal },
): Promise<void> {
  const backoff = createBackoff(firstRestartMs, slowestRestartMs);
  for (let current = child; ; current = start()) {
    const startedAt = performance.now();
    const status = await current.leaving;
    if (signal.aborted) return;
    if (performance.now() - startedAt > stableMs) backoff.reset();
    const inMs = Math.round(backoff.next());
    const fields = { child: current.pid, status: status ?? "draining", inMs };
    log.warn("Worker process exited; starting a replacement", fields);
    // A signal from a terminal also reaches the children: wait, so that it arrives here before they are replaced.
    await wait(inMs, signal);
    if (signal.aborted) return;
  }
}
