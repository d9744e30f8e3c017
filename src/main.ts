import { raiseFetchLimit } from "./fetch-limit.ts";
import { runCommand } from "./commands/commands.ts";

raiseFetchLimit();

const stop = new AbortController();
for (const signal of ["SIGTERM", "SIGINT"] as const) {
  process.on(signal, () => {
    if (stop.signal.aborted) process.exit(1);
    stop.abort();
  });
}

process.exit(
  await runCommand(process.argv.slice(2), {
    env: process.env,
    stdout: process.stdout,
    stderr: process.stderr,
    signal: stop.signal,
  }),
);
