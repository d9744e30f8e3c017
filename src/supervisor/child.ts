import type { Environment } from "../config/config.ts";
import type { Catalog } from "../domain/models.ts";
import type { Dispatch } from "../routing/dispatch.ts";
import type { Aggregate, StatsSource } from "./aggregate.ts";
import { createChildTickets } from "./child-tickets.ts";
import { type Heartbeat, type HeartbeatLimits, startHeartbeat } from "./heartbeat.ts";
import type { Addresses, ChildMethods, ParentMethods } from "./protocol.ts";
import { childTimeoutMs } from "./protocol.ts";
import { createRpc } from "./rpc.ts";

/** One of the processes that share a port, as seen by its parent. */
export interface Child extends StatsSource {
  pid: number;
  /** Never resolves if the process exits first. */
  listening: Promise<Addresses>;
  /** Resolves when the process stops accepting connections: its exit status, or undefined if it is draining. */
  leaving: Promise<number | undefined>;
  /** The exit status; 128 plus the signal's number if a signal ended the process. */
  exited: Promise<number>;
  /** Whether the process has accepted requests. */
  hasListened: () => boolean;
  /** Requests a drain. */
  stop(): void;
  kill(): void;
  /** @param shut those that take no requests now */
  backendsChanged(shut: string[]): void;
  catalogReplaced(catalog: Catalog): void;
}

export function startChild(options: {
  command: string[];
  env: Environment;
  aggregate: Aggregate;
  dispatch: Dispatch;
  catalog: () => Catalog;
  /** Limits the refused requests of a source that all processes log. */
  mayLogRefused: (source: string) => boolean;
  machine: ParentMethods["machine"];
  /** Applied while the process listens, not while it starts or drains. */
  heartbeatLimits: HeartbeatLimits;
  onUnresponsive: (child: Child) => void;
}): Child {
  const { command, env, aggregate, dispatch, catalog, mayLogRefused, machine, heartbeatLimits, onUnresponsive } =
    options;
  const listening = Promise.withResolvers<Addresses>();
  const draining = Promise.withResolvers<undefined>();
  let stopping = false;
  let hasListened = false;
  let heartbeat: Heartbeat | undefined;
  const stopHeartbeat = (): void => heartbeat?.[Symbol.dispose]();
  const { leaveAll, ...tickets } = createChildTickets(dispatch, {
    onGranted: (ticket, choice) => void rpc.call("placeGranted", ticket, choice).catch(() => {}),
    onDisplaced: (ticket) => void rpc.call("placeDisplaced", ticket).catch(() => {}),
  });
  const methods: ParentMethods = {
    listening(at) {
      hasListened = true;
      aggregate.add(child);
      listening.resolve(at);
      const shut = dispatch.shut();
      if (shut.length > 0) child.backendsChanged(shut);
      heartbeat = startHeartbeat(heartbeatLimits, {
        ping: () => void rpc.call("ping").catch(() => {}),
        onUnresponsive: () => onUnresponsive(child),
      });
      // A stop that was sent during startup may have arrived before the child could receive it.
      if (stopping) child.stop();
    },
    draining() {
      stopHeartbeat();
      draining.resolve(undefined);
    },
    finalMetrics: (metrics) => aggregate.setFinalMetrics(child, metrics),
    metricsText: aggregate.metricsText,
    inFlight: aggregate.inFlight,
    running: aggregate.running,
    endRequest: aggregate.endRequest,
    ...tickets,
    catalog,
    listBackends: dispatch.list,
    setDraining: dispatch.setDraining,
    hasRestarted: dispatch.hasRestarted,
    mayLogRefused,
    machine,
  };
  const spawned = Bun.spawn(command, {
    env,
    stdin: "ignore",
    stdout: "inherit",
    stderr: "inherit",
    ipc(message) {
      heartbeat?.alive();
      rpc.receive(message);
    },
  });
  const rpc = createRpc<ChildMethods>(methods, (message) => spawned.send(message), childTimeoutMs);
  const exited = spawned.exited.then(async (status) => {
    stopHeartbeat();
    rpc.close();
    leaveAll();
    await aggregate.remove(child);
    return status;
  });
  const child: Child = {
    pid: spawned.pid,
    listening: listening.promise,
    leaving: Promise.race([draining.promise, exited]),
    exited,
    hasListened: () => hasListened,
    stop() {
      stopping = true;
      rpc.call("stop").catch(() => {});
    },
    kill: () => spawned.kill("SIGKILL"),
    backendsChanged: (shut) => void rpc.call("backendsChanged", shut).catch(() => {}),
    catalogReplaced: (next) => void rpc.call("catalogReplaced", next).catch(() => {}),
    metrics: () => rpc.call("metrics"),
    inFlight: () => rpc.call("inFlight"),
    running: () => rpc.call("running"),
    endRequest: (id) => rpc.call("endRequest", id),
  };
  return child;
}
