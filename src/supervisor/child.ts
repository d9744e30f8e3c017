import type { Environment } from "../config.ts";
import type { Addresses, AskedOfParent, AskedOfProcess } from "./protocol.ts";
import { processDeadlineMs } from "./protocol.ts";
import { createRpc } from "./rpc.ts";
import type { Counted, Aggregate } from "./aggregate.ts";
import { type HeartbeatLimits, startHeartbeat, type Heartbeat } from "./heartbeat.ts";

/** One of the processes that share a port, as its parent sees it. */
export interface Child extends Counted {
  pid: number;
  /** Never resolves where it ends before. */
  listening: Promise<Addresses>;
  /** It takes no new connections any more: its exit status, or undefined where it drains. */
  leaving: Promise<number | undefined>;
  /** The exit status; 128 and the signal's number where one ended it. */
  exited: Promise<number>;
  /** Lets it drain. */
  stop(): void;
  kill(): void;
}

export interface ChildOptions {
  command: string[];
  env: Environment;
  sums: Aggregate;
  /** With a process that listens; one that starts or drains takes its time. */
  heartbeatLimits: HeartbeatLimits;
  /** It does not answer any more. */
  onUnresponsive: (child: Child) => void;
}

export function startChild({ command, env, sums, heartbeatLimits, onUnresponsive }: ChildOptions): Child {
  const listening = Promise.withResolvers<Addresses>();
  const draining = Promise.withResolvers<undefined>();
  let stopping = false;
  let watch: Heartbeat | undefined;
  const endWatch = (): void => watch?.[Symbol.dispose]();
  const own: AskedOfParent = {
    listening(at) {
      sums.add(child);
      listening.resolve(at);
      watch = startHeartbeat(heartbeatLimits, {
        ask: () => void peer.call("alive").catch(() => {}),
        onUnresponsive: () => onUnresponsive(child),
      });
      // What was asked while it started may have come before it could listen.
      if (stopping) child.stop();
    },
    draining() {
      endWatch();
      draining.resolve(undefined);
    },
    leaving: (last) => sums.keep(child, last),
    metricsText: sums.metricsText,
    inFlight: sums.inFlight,
  };
  const spawned = Bun.spawn(command, {
    env,
    stdin: "ignore",
    stdout: "inherit",
    stderr: "inherit",
    ipc(message) {
      watch?.alive();
      peer.receive(message);
    },
  });
  const peer = createRpc<AskedOfProcess>(own, (message) => spawned.send(message), processDeadlineMs);
  const exited = spawned.exited.then(async (status) => {
    endWatch();
    peer.close();
    await sums.remove(child);
    return status;
  });
  const child: Child = {
    pid: spawned.pid,
    listening: listening.promise,
    leaving: Promise.race([draining.promise, exited]),
    exited,
    stop() {
      stopping = true;
      peer.call("stop").catch(() => {});
    },
    kill: () => spawned.kill("SIGKILL"),
    metrics: () => peer.call("metrics"),
    inFlight: () => peer.call("inFlight"),
  };
  return child;
}
