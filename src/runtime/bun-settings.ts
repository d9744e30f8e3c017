import { ownCommandLine } from "./command-line.ts";

/** What Bun 1.4.5 reads only from the environment of a new process. */
export const bunSettings = {
  /** The maximum; else it runs at most 256 `fetch` calls at once. Remove when it can be set at run time. */
  BUN_CONFIG_MAX_HTTP_REQUESTS: "65535",
  /**
   * Else what was compiled is thrown away if a function did not run for some seconds, and is compiled again for the next
   * requests, which takes a tenth of their time while there are few. A Bun that does not know the option does not start.
   * Remove when a server keeps its code by itself.
   */
  BUN_JSC_forceCodeBlockLiveness: "1",
};

/**
 * Replaces the process by itself with these settings, with the same process id, unless it has them. Everything before the
 * call runs twice.
 */
export function applyBunSettings(): void {
  restartWith(bunSettings);
}

/**
 * Replaces the process by itself with these variables, unless it has them. `process.env` may not hold what a file in the
 * working folder says, such as LD_PRELOAD: `.ci/build` and `bunfig.toml` keep Bun from reading `.env`.
 */
export function restartWith(variables: Readonly<Record<string, string>>): void {
  const isComplete = Object.keys(variables).every((name) => process.env[name] !== undefined);
  if (isComplete || process.execve === undefined) return;
  process.execve(process.execPath, ownCommandLine(process.argv.slice(2)), { ...variables, ...process.env });
}
