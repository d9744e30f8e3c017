import type { Environment } from "../config.ts";
import type { Addresses, AskedOfParent, AskedOfProcess } from "./protocol.ts";
import { processDeadlineMs } from "./protocol.ts";
import { createPeer } from "./rpc.ts";
import type { Counted, Sums } from "./aggregate.ts";
import { type Patience, startWatch, type Watch } from "./heartbeat.ts";

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
  sums: Sums;
  /** With a process that listens; one that starts or drains takes its time. */
  patience: Patience;
  /** It does not answer any more. */
  hung: (child: Child) => void;
}

export function startChild({ command, env, sums, patience, hung }: ChildOptions): Child {
  const listening = Promise.withResolvers<Addresses>();
  const draining = Promise.withResolvers<undefined>();
  let stopping = false;
  let watch: Watch | undefined;
  const endWatch = (): void => watch?.[Symbol.dispose]();
  const own: AskedOfParent = {
    listening(at) {
      sums.add(child);
      listening.resolve(at);
      watch = startWatch(patience, { ask: () => void peer.ask("alive").catch(() => {}), hung: () => hung(child) });
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
      watch?.heard();
      peer.receive(message);
    },
  });
  const peer = createPeer<AskedOfProcess>(own, (message) => spawned.send(message), processDeadlineMs);
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
      peer.ask("stop").catch(() => {});
    },
    kill: () => spawned.kill("SIGKILL"),
    metrics: () => peer.ask("metrics"),
    inFlight: () => peer.ask("inFlight"),
  };
  return child;
}
