import type { Environment } from "../config.ts";
import type { Addresses, AskedOfParent, AskedOfProcess } from "./group.ts";
import { processDeadlineMs } from "./group.ts";
import { createPeer } from "./peer.ts";
import type { Counted, Sums } from "./sums.ts";

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

export function startChild(command: string[], env: Environment, sums: Sums): Child {
  const listening = Promise.withResolvers<Addresses>();
  const draining = Promise.withResolvers<undefined>();
  let stopping = false;
  const own: AskedOfParent = {
    listening(at) {
      sums.add(child);
      listening.resolve(at);
      // What was asked while it started may have come before it could listen.
      if (stopping) child.stop();
    },
    draining: () => draining.resolve(undefined),
    leaving: (last) => sums.keep(child, last),
    metricsText: sums.metricsText,
    inFlight: sums.inFlight,
  };
  const spawned = Bun.spawn(command, {
    env,
    stdin: "ignore",
    stdout: "inherit",
    stderr: "inherit",
    ipc: (message) => peer.receive(message),
  });
  const peer = createPeer<AskedOfProcess>(own, (message) => spawned.send(message), processDeadlineMs);
  const exited = spawned.exited.then(async (status) => {
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
      peer.ask("stop").catch(() => {});
    },
    kill: () => spawned.kill("SIGKILL"),
    metrics: () => peer.ask("metrics"),
    inFlight: () => peer.ask("inFlight"),
  };
  return child;
}
