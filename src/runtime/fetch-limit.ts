import { ownCommandLine } from "./command-line.ts";

/** The maximum in Bun 1.4.5. */
const maxRequests = "65535";

/**
 * Bun 1.4.5 runs at most 256 `fetch` calls at once, and reads another limit only from the environment of a new process.
 * This replaces the process by itself, with the same process id. Everything before the call runs twice.
 * Remove when the limit can be set at run time.
 */
export function raiseFetchLimit(): void {
  if (process.env["BUN_CONFIG_MAX_HTTP_REQUESTS"] !== undefined || process.execve === undefined) return;
  process.execve(process.execPath, ownCommandLine(process.argv.slice(2)), {
    ...process.env,
    BUN_CONFIG_MAX_HTTP_REQUESTS: maxRequests,
  });
}
