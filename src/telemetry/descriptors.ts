import { readdirSync, readFileSync } from "node:fs";
import type { RequestObserver } from "../domain/requests.ts";
import type { Log } from "../log/log.ts";
import type { MonotonicClock } from "../time/clock.ts";

/** How many file descriptors the process may open (proc_pid_limits(5)); undefined if unknown (only Linux reports it). */
export function findDescriptorLimit(): number | undefined {
  const limits = ifThere(() => readFileSync("/proc/self/limits", "utf8")) ?? "";
  const [, soft] = /^Max open files +(\w+)/m.exec(limits) ?? [];
  return soft === undefined ? undefined : soft === "unlimited" ? Infinity : Number(soft);
}

/** How many file descriptors the process has open; undefined if unknown. */
export function countOpenDescriptors(): number | undefined {
  return ifThere(() => readdirSync("/proc/self/fd").length);
}

/** Every stream takes two: below this, a busy server runs out. */
export const recommendedDescriptors = 4_096;

export function warnOfLowDescriptorLimit(log: Log): void {
  const limit = findDescriptorLimit();
  if (limit === undefined || limit >= recommendedDescriptors) return;
  const recommended = recommendedDescriptors;
  log.warn("Low limit of file descriptors; raise LimitNOFILE or ulimit -n", { limit, recommended });
}

/** One line in this time while the shortage lasts. */
const repeatAfterMs = 10_000;

/** Logs that no file descriptor is left when a request fails because of it. */
export function createDescriptorLog(log: Log, monotonic: MonotonicClock): RequestObserver {
  // There may be no descriptor left to read it with later.
  const limit = findDescriptorLimit();
  let loggedAt = -Infinity;
  return {
    finished({ cause }) {
      if (cause !== "EMFILE" && cause !== "ENFILE") return;
      if (monotonic() - loggedAt < repeatAfterMs) return;
      loggedAt = monotonic();
      log.error("Out of file descriptors, so requests fail; raise LimitNOFILE or ulimit -n", { cause, limit });
    },
  };
}

function ifThere<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
