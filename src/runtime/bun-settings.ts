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
  const isComplete = Object.keys(bunSettings).every((name) => process.env[name] !== undefined);
  if (isComplete || process.execve === undefined) return;
  process.execve(process.execPath, ownCommandLine(process.argv.slice(2)), { ...bunSettings, ...process.env });
}

/** Names of variables that Bun reads only from the environment of a new process. */
const readAtStart = /^(?:BUN|NODE)_/;

/** Replaces the process by itself if the environment has settings of Bun that the process was started without. */
export function restartWith(environment: Readonly<Record<string, string | undefined>>): void {
  const missing = Object.entries(environment).filter(
    ([name, value]) => readAtStart.test(name) && value !== undefined && process.env[name] === undefined,
  );
  if (missing.length === 0 || process.execve === undefined) return;
  const environmentOfProcess = { ...process.env, ...Object.fromEntries(missing) };
  process.execve(process.execPath, ownCommandLine(process.argv.slice(2)), environmentOfProcess);
}
