import { batchPerTick } from "../time/per-tick.ts";

/** How many UTF-16 units may wait for a reader that has stopped reading: its pipe takes 64 KiB, and memory the rest. */
export const maxWaiting = 8 * 1024 * 1024;

/**
 * Writes all log lines of one tick in one call, because a system call costs more than a line. Pending lines are written
 * when the process exits; SIGKILL loses at most the lines of one tick.
 * @param write calls `written` once the text is written, or cannot be
 * @param onDropped called when there is room again, with the number of lines for which there was none
 */
export function createLogWriter(
  write: (text: string, written: () => void) => void,
  onDropped: (lines: number) => void,
): (line: string) => void {
  let waiting = 0;
  let dropped = 0;
  const lines = batchPerTick<string>((batch) => {
    if (waiting > maxWaiting) {
      dropped += batch.length;
      return;
    }
    const text = batch.join("");
    waiting += text.length;
    write(text, () => {
      waiting -= text.length;
      if (dropped === 0 || waiting > maxWaiting) return;
      const count = dropped;
      dropped = 0;
      onDropped(count);
    });
  });
  process.on("exit", lines.flush);
  return lines.add;
}
