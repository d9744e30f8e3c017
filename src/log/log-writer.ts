import { batchPerTick } from "../time/per-tick.ts";

/**
 * Writes all log lines of one tick in one call, because a system call costs more than a line. Pending lines are written
 * when the process exits; SIGKILL loses at most the lines of one tick.
 */
export function createLogWriter(write: (text: string) => void): (line: string) => void {
  const lines = batchPerTick<string>((batch) => write(batch.join("")));
  process.on("exit", lines.flush);
  return lines.add;
}
