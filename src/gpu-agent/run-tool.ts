import type { Environment } from "../config.ts";
import { wait } from "../time/wait.ts";

/** The tool gave no readings. The message is for the operator. */
export class ToolError extends Error {
  override name = "ToolError";
}

export interface ToolRun {
  /** Program and arguments. */
  command: readonly string[];
  env: Environment;
  /** Kills the tool. */
  signal: AbortSignal;
  /** A tool that prints nothing for this long hangs in its driver, and is killed. */
  outputTimeoutMs: number;
  /** Reads the tool's output, and calls `alive` at each sign of life. */
  read: (stdout: ReadableStream<Uint8Array>, alive: () => void) => Promise<void>;
}

export interface ToolExit {
  status: number;
  /** The first line of standard error, or empty. */
  errorLine: string;
}

/**
 * Runs the tool until it exits, hangs or is stopped. In any case the process is dead when this resolves.
 * @throws ToolError if it was unresponsive, or could not be started
 */
export async function runTool(run: ToolRun): Promise<ToolExit> {
  const child = spawnTool(run);
  let unresponsive = false;
  // A query has no state to clean up, and a hanging one ignores SIGTERM.
  const kill = (): void => child.kill("SIGKILL");
  const watchdog = setTimeout(() => {
    unresponsive = true;
    kill();
  }, run.outputTimeoutMs);
  run.signal.addEventListener("abort", kill, { once: true });
  if (run.signal.aborted) kill();
  try {
    const errorLine = readFirstLine(child.stderr);
    const output = run.read(child.stdout, () => watchdog.refresh());
    output.catch(kill);
    const status = await child.exited;
    // The pipe may still hold its last output. Limited, because a grandchild can keep the pipe open.
    await Promise.race([Promise.all([output, errorLine]), wait(1000, run.signal)]);
    if (unresponsive) {
      throw new ToolError(`${run.command[0]} printed nothing for ${run.outputTimeoutMs / 1000} s and was killed`);
    }
    return { status, errorLine: await Promise.race([errorLine, Promise.resolve("")]) };
  } finally {
    clearTimeout(watchdog);
    run.signal.removeEventListener("abort", kill);
  }
}

// oxlint-disable-next-line typescript/explicit-function-return-type -- the type follows from the options
function spawnTool({ command, env }: ToolRun) {
  try {
    return Bun.spawn([...command], {
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
      // A decimal comma would be read as the end of a cell.
      env: { ...env, LC_ALL: "C" },
    });
  } catch (error) {
    // It existed when this command started: a driver update removes it for a while.
    const code = error instanceof Error && "code" in error ? String(error.code) : "unknown error";
    throw new ToolError(`${command[0]} cannot be started (${code})`);
  }
}

/** The first line that is not blank. The rest is read too, so that the tool never blocks on a full pipe. */
async function readFirstLine(stream: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of stream) {
    if (text.length < 2000) text += decoder.decode(chunk, { stream: true });
  }
  return text.trim().split("\n")[0]?.trim() ?? "";
}
