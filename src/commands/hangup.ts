import { readFileSync } from "node:fs";

/**
 * Whether this process was started to outlive its terminal, as by `nohup`: a handler for SIGHUP would undo that. Linux
 * only.
 */
export function ignoresHangup(): boolean {
  try {
    // proc_pid_status(5): SIGHUP is the lowest bit.
    return /^SigIgn:\s.*[13579bdf]$/m.test(readFileSync("/proc/self/status", "utf8"));
  } catch {
    return false;
  }
}
