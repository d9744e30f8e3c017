import { applyBunSettings } from "./runtime/bun-settings.ts";
import { ignoresHangup } from "./commands/hangup.ts";

applyBunSettings();

const stop = new AbortController();
/**
 * `npm run` and the launcher of the npm package forward signals that the terminal also sends to the children, so one
 * Ctrl-C arrives twice.
 */
const duplicateSignalMs = process.env["npm_lifecycle_event"] === undefined ? 0 : 1000;
let stoppedAt = 0;
for (const signal of ["SIGTERM", "SIGINT"] as const) {
  process.on(signal, () => {
    if (!stop.signal.aborted) stoppedAt = performance.now();
    else if (performance.now() - stoppedAt >= duplicateSignalMs) process.exit(1);
    stop.abort();
  });
}
// A terminal that closes may send it more than once, so a second one does not end the process.
if (!ignoresHangup()) process.on("SIGHUP", () => stop.abort());

// Imported here, because code before applyBunSettings runs twice.
const { runCommand } = await import("./commands/commands.ts");

process.exit(
  await runCommand(process.argv.slice(2), {
    env: process.env,
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    signal: stop.signal,
  }),
);
