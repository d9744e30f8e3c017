import { raiseFetchLimit } from "./runtime/fetch-limit.ts";

raiseFetchLimit();

const stop = new AbortController();
/** `npm run` hands on a signal that the terminal has sent to its children too: one Ctrl-C arrives twice there. */
const sameSignalMs = process.env["npm_lifecycle_event"] === undefined ? 0 : 1000;
let stoppedAt = 0;
for (const signal of ["SIGTERM", "SIGINT"] as const) {
  process.on(signal, () => {
    if (!stop.signal.aborted) stoppedAt = performance.now();
    else if (performance.now() - stoppedAt >= sameSignalMs) process.exit(1);
    stop.abort();
  });
}

// Loaded only now: what runs before raiseFetchLimit runs twice.
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
