/** The most that Bun 1.4.5 takes. */
const mostRequests = "65535";

/**
 * Bun's `fetch` runs at most 256 requests at once, and only the environment that a process starts with can raise that:
 * so the program starts itself anew in the same process. This can go when `fetch` has an option for it.
 */
export function raiseFetchLimit(): void {
  if (process.env["BUN_CONFIG_MAX_HTTP_REQUESTS"] !== undefined || process.execve === undefined) return;
  // A compiled program names itself in argv[1] by a path inside the binary, which is no argument.
  const args = Bun.isStandaloneExecutable ? process.argv.slice(2) : process.argv.slice(1);
  process.execve(process.execPath, [process.execPath, ...process.execArgv, ...args], {
    ...process.env,
    BUN_CONFIG_MAX_HTTP_REQUESTS: mostRequests,
  });
}
