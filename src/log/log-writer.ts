import { batchPerTick } from "../time/per-tick.ts";

/**
 * Writes all log lines of one tick at once: a system call costs more than a line. What is left is written when the
 * program exits; `kill -9` loses at most the lines of one tick.
 */
export function createLogWriter(write: (text: string) => void): (line: string) => void {
  const lines = batchPerTick<string>((batch) => write(batch.join("")));
  process.on("exit", lines.flush);
  return lines.add;
}
