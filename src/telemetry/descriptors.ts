import { readdirSync, readFileSync } from "node:fs";
import type { Log } from "../log/log.ts";
import type { MonotonicClock } from "../time/clock.ts";
import type { RequestObserver } from "../domain/requests.ts";
import { statfs } from "node:fs/promises";

/** How many file descriptors the process may open; undefined if unknown. */
export function findDescriptorLimit(): number | undefined {
  try {
    return readDescriptorLimit();
  } catch {
    return undefined;
  }
}

/** Reads the limit as proc_pid_limits(5) reports it. @throws if the system does not (only Linux does), or if no descriptor is left */
export function readDescriptorLimit(): number {
  const [, soft] = /^Max open files +(\w+)/m.exec(readFileSync("/proc/self/limits", "utf8")) ?? [];
  if (soft === undefined) throw new Error("/proc/self/limits does not have the limit");
  return soft === "unlimited" ? Infinity : Number(soft);
}

/**
 * How many file descriptors the process has open. If all that it may have are open, there is none left to count them with.
 * @throws if the system does not tell (only Linux does)
 */
export function countOpenDescriptors(limit: number): number {
  try {
    return readdirSync("/proc/self/fd").length;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EMFILE") return limit;
    throw error;
  }
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

/** Measures the disk that has a folder. */
export async function measureDisk(folder: string) {
  const { bavail, blocks, bsize } = await statfs(folder);
  return {
    /** What this user may still write. */
    freeBytes: bavail * bsize,
    sizeBytes: blocks * bsize,
  };
}
