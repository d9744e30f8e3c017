// The program starts here: Bun's own settings, then the signals, then the command that the arguments name.
//
// It keeps true: what Bun reads only from the environment of a new process is set before anything else runs, for which
// the process may replace itself; and a signal has its handler before a command is loaded. It knows no command and no
// setting of ours.

import { applyBunSettings } from "./runtime/bun-settings.ts";
import { handleSignals } from "./commands/signals.ts";

applyBunSettings();

const signals = handleSignals();

// A reader that leaves, such as `head -1`, or a full disk below a log, stops neither a command nor a server.
for (const output of [process.stdout, process.stderr]) output.on("error", () => undefined);

// Imported here, because code before applyBunSettings runs twice.
const { runCommand } = await import("./commands/commands.ts");

process.exit(
  await runCommand(process.argv.slice(2), {
    env: process.env,
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    ...signals,
  }),
);
