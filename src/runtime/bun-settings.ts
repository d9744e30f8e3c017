// What the program needs of Bun and Elysia below its own rooms: the settings of a process, listeners, certificates,
// UNIX sockets, and workarounds that stand alone. A workaround names the version that needs it.
//
// It imports nothing of ours: what it needs of the product, such as whom to tell of a new certificate, is an argument.

/** Below this limit of memory, what is free goes back to the kernel as soon as by default. */
const smallMemoryBytes = 512 * 1024 ** 2;

/**
 * What Bun 1.4.5 reads only from the environment of a new process.
 * @param memoryBytes what the process may use: the limit of its cgroup, or all
 */
export function bunSettings(memoryBytes: number): Readonly<Record<string, string>> {
  const purgeMs = memoryBytes < smallMemoryBytes ? "100" : "10000";
  return {
    /** The maximum; else it runs at most 256 `fetch` calls at once. Remove when it can be set at run time. */
    BUN_CONFIG_MAX_HTTP_REQUESTS: "65535",
    /**
     * Else what was compiled is thrown away if a function did not run for some seconds, and is compiled again for the next
     * requests, which takes a tenth of their time while there are few. A Bun that does not know the option does not start.
     * Remove when a server keeps its code by itself.
     */
    BUN_JSC_forceCodeBlockLiveness: "1",
    /**
     * How long the allocator keeps free memory. By default 100 ms, so that each long body faults its pages in anew: a sixth
     * of the CPU time of one of 100 kB. Remove when Bun keeps the memory of bodies that follow each other.
     */
    MIMALLOC_PURGE_DELAY: purgeMs,
    MIMALLOC_PURGE_HOLES_MIN_INTERVAL: purgeMs,
  };
}

/**
 * Replaces the process by itself with these settings, with the same process id, unless it has them. Everything before the
 * call runs twice.
 */
export function applyBunSettings(): void {
  restartWith(bunSettings(process.constrainedMemory()));
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

/** The command line that runs this program with other arguments, from source or as the compiled binary. */
export function ownCommandLine(args: readonly string[]): string[] {
  // In the binary argv[1] is a path inside it, not an argument.
  const sources = Bun.isStandaloneExecutable ? [] : process.argv.slice(1, 2);
  return [process.execPath, ...process.execArgv, ...sources, ...args];
}

/** A path below a file: no socket can exist there. */
const nowhere = "/dev/null/nowhere";

/**
 * Starts the thread that runs all `fetch` calls. Bun 1.4.5 starts it at the first call, and exits if clients have taken
 * all file descriptors by then.
 * Remove when a first `fetch` without a free descriptor rejects.
 */
export async function startFetchThread(): Promise<void> {
  await fetch("http://localhost/", { unix: nowhere, proxy: false }).catch(() => {});
}
