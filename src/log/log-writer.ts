/**
 * Writes what comes in one turn of the event loop at once: a system call for a log line costs more than the line. At the
 * program's end nothing is left behind, unless it is killed.
 */
export function createLogWriter(write: (text: string) => void): (line: string) => void {
  let lines = "";
  const flush = (): void => {
    const text = lines;
    lines = "";
    if (text !== "") write(text);
  };
  process.on("exit", flush);
  return (line) => {
    if (lines === "") setImmediate(flush);
    lines += line;
  };
}
