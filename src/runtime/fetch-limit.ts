import { ownCommandLine } from "./command-line.ts";

/** The most that Bun 1.4.5 takes. */
const mostRequests = "65535";

/**
 * Bun's `fetch` runs at most 256 requests at once, and only the environment that a process starts with can raise that:
 * so the program starts itself anew in the same process. This can go when `fetch` has an option for it.
 */
export function raiseFetchLimit(): void {
  if (process.env["BUN_CONFIG_MAX_HTTP_REQUESTS"] !== undefined || process.execve === undefined) return;
  process.execve(process.execPath, ownCommandLine(process.argv.slice(2)), {
    ...process.env,
    BUN_CONFIG_MAX_HTTP_REQUESTS: mostRequests,
  });
}
