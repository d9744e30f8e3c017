import { applyBunSettings } from "./runtime/bun-settings.ts";
import { handleSignals } from "./commands/signals.ts";

applyBunSettings();

const signals = handleSignals();

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
