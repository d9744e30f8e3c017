import type { Environment } from "../config/config.ts";
import type { Catalog } from "../domain/models.ts";
import type { Dispatch } from "../routing/dispatch.ts";
import type { Aggregate } from "./aggregate.ts";
import { type Heartbeat, type HeartbeatLimits, startHeartbeat } from "./heartbeat.ts";
import { type Addresses, type ChildMethods, childTimeoutMs, type ParentMethods } from "./protocol.ts";
import { createRpc } from "./rpc.ts";

/** One of the processes that share a port, as seen by its parent. */
export type Child = ReturnType<typeof startChild>;

interface ChildOptions {
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
  onUnresponsive: (pid: number) => void;
}

export function startChild(options: ChildOptions) {
  const { command, env, aggregate, dispatch, catalog, mayLogRefused, machine, heartbeatLimits } = options;
  const listening = Promise.withResolvers<Addresses>();
  const draining = Promise.withResolvers<undefined>();
  let [stopping, hasListened] = [false, false];
  let heartbeat: Heartbeat | undefined;
  const stopHeartbeat = (): void => heartbeat?.[Symbol.dispose]();
  const places = new Map<number, ReturnType<Dispatch["enter"]>>();
  const leaveQueue: ParentMethods["leaveQueue"] = (ticket, input) => {
    places.get(ticket)?.leave(input);
    places.delete(ticket);
  };
  const methods: ParentMethods = {
    listening(at) {
      hasListened = true;
      aggregate.add(child);
      listening.resolve(at);
      const shut = dispatch.shut();
      if (shut.length > 0) child.backendsChanged(shut);
      heartbeat = startHeartbeat(heartbeatLimits, {
        ping: () => void rpc.call("ping").catch(() => {}),
        onUnresponsive() {
          options.onUnresponsive(spawned.pid);
          child.kill();
        },
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
    enterQueue(ticket, request) {
      const place = dispatch.enter(request, {
        onGranted: (choice) => void rpc.call("placeGranted", ticket, choice).catch(() => {}),
        onDisplaced: () => void rpc.call("placeDisplaced", ticket).catch(() => {}),
      });
      places.set(ticket, place);
      return place.entry;
    },
    leaveQueue,
    reportSign: (ticket, sign) => places.get(ticket)?.report(sign),
    rankInLine: (ticket) => places.get(ticket)?.rank(),
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
    for (const ticket of places.keys()) leaveQueue(ticket);
    await aggregate.remove(child);
    return status;
  });
  const child = {
    pid: spawned.pid,
    /** Never resolves if the process exits first. */
    listening: listening.promise,
    /** Resolves when the process stops accepting connections: its exit status, or undefined if it is draining. */
    leaving: Promise.race([draining.promise, exited]),
    /** The exit status; 128 plus the signal's number if a signal ended the process. */
    exited,
    /** Whether the process has accepted requests. */
    hasListened: () => hasListened,
    /** Requests a drain. */
    stop(): void {
      stopping = true;
      rpc.call("stop").catch(() => {});
    },
    kill: () => spawned.kill("SIGKILL"),
    /** @param shut those that take no requests now */
    backendsChanged: (shut: string[]) => void rpc.call("backendsChanged", shut).catch(() => {}),
    catalogReplaced: (next: Catalog) => void rpc.call("catalogReplaced", next).catch(() => {}),
    metrics: () => rpc.call("metrics"),
    inFlight: () => rpc.call("inFlight"),
    running: () => rpc.call("running"),
    endRequest: (id: string) => rpc.call("endRequest", id),
  };
  return child;
}
