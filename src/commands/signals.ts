import { constants } from "node:os";
import { type CommandIo, serveProcessCommand } from "./command.ts";
import { readFileSync } from "node:fs";

/**
 * `npm run` and the launcher of the npm package forward signals that the terminal also sends to the children, so one
 * Ctrl-C arrives twice.
 */
const duplicateSignalMs = process.env["npm_lifecycle_event"] === undefined ? 0 : 1000;

/**
 * Where there are several processes, only the parent obeys SIGHUP, and stops the others: it knows whether `nohup` started
 * the program, which its children do not inherit, and a hangup of a terminal reaches them all.
 */
const isChild = process.argv[2] === serveProcessCommand;

/** Handles the signals that stop this process, from now on. */
export function handleSignals(): Pick<CommandIo, "signal" | "endAtSignals"> {
  const names: NodeJS.Signals[] = ["SIGTERM", "SIGINT"];
  if (isChild) process.on("SIGHUP", () => {});
  else if (!ignoresHangup()) names.push("SIGHUP");
  const stop = new AbortController();
  let first: { name: NodeJS.Signals; at: number } | undefined;
  const onSignal = (name: NodeJS.Signals): void => {
    const now = performance.now();
    // A terminal that closes may send SIGHUP more than once, so a second one does not end the process.
    if (first !== undefined && name !== "SIGHUP" && now - first.at >= duplicateSignalMs) process.exit(1);
    first ??= { name, at: now };
    stop.abort();
  };
  for (const name of names) process.on(name, onSignal);
  return {
    signal: stop.signal,
    async endAtSignals(work) {
      // One that came while the command was loaded may not have reached its handler.
      await new Promise((resolve) => setImmediate(resolve));
      for (const name of names) exchange(name, onSignal, endOfFirstProcess);
      if (first !== undefined) process.kill(process.pid, first.name);
      try {
        return await work();
      } finally {
        for (const name of names) exchange(name, endOfFirstProcess, onSignal);
      }
    },
  };
}

type Handler = (name: NodeJS.Signals) => void;

/** Undefined: without a handler the kernel ends the process, even if it is busy. But in a container it spares process 1. */
const endOfFirstProcess: Handler | undefined =
  process.pid === 1 ? (name) => process.exit(128 + constants.signals[name]) : undefined;

function exchange(name: NodeJS.Signals, from: Handler | undefined, to: Handler | undefined): void {
  if (from !== undefined) process.off(name, from);
  if (to !== undefined) process.on(name, to);
}

/**
 * Whether this process was started to outlive its terminal, as by `nohup`: a handler for SIGHUP would undo that. Linux
 * only.
 */
function ignoresHangup(): boolean {
  try {
    // proc_pid_status(5): SIGHUP is the lowest bit.
    return /^SigIgn:\s.*[13579bdf]$/m.test(readFileSync("/proc/self/status", "utf8"));
  } catch {
    return false;
  }
}
