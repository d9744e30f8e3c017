import type { Environment } from "../config/config.ts";
import { wait } from "../time/wait.ts";

/** The tool gave no readings. The message is for the operator. */
export class ToolError extends Error {
  override name = "ToolError";

  constructor(
    message: string,
    /** Present if the process could not be killed: resolves when it has exited. */
    readonly stuckUntil?: Promise<unknown>,
  ) {
    super(message);
  }
}

export interface ToolRunOptions {
  env: Environment;
  /** Kills the tool. */
  signal: AbortSignal;
  /** A tool that prints nothing for this long hangs in its driver, and is killed. */
  outputTimeoutMs: number;
}

interface ToolRun extends ToolRunOptions {
  /** Program and arguments. */
  command: readonly string[];
  /** Reads the tool's output, and calls `alive` at each sign of life. */
  read: (stdout: ReadableStream<Uint8Array>, alive: () => void) => Promise<void>;
}

/** A process that is stuck in the driver's code ignores SIGKILL too, perhaps until the host is rebooted. */
const killTimeoutMs = 1500;

/**
 * Runs the tool until it exits, hangs or is stopped. The process is dead when this resolves.
 * @returns `errorLine` is the first line of standard error, or empty
 * @throws ToolError if it was unresponsive, could not be started, or could not be killed
 */
export async function runTool(run: ToolRun): Promise<{ status: number; errorLine: string }> {
  const child = spawnTool(run);
  const [tool] = run.command;
  let unresponsive = false;
  const stuck = Promise.withResolvers<never>();
  let killTimeout: Timer | undefined;
  // A query has no state to clean up, and a hanging one ignores SIGTERM.
  const kill = (): void => {
    child.kill("SIGKILL");
    const why = unresponsive ? ` printed nothing for ${run.outputTimeoutMs / 1000} s and` : "";
    const giveUp = (): void => stuck.reject(new ToolError(`${tool}${why} cannot be killed`, child.exited));
    killTimeout ??= setTimeout(giveUp, killTimeoutMs);
  };
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
    const status = await Promise.race([child.exited, stuck.promise]);
    // The pipe may still hold its last output. Limited, because a grandchild can keep the pipe open.
    await Promise.race([Promise.all([output, errorLine]), wait(1000, run.signal)]);
    if (unresponsive) {
      throw new ToolError(`${tool} printed nothing for ${run.outputTimeoutMs / 1000} s and was killed`);
    }
    return { status, errorLine: await Promise.race([errorLine, Promise.resolve("")]) };
  } finally {
    clearTimeout(watchdog);
    clearTimeout(killTimeout);
    run.signal.removeEventListener("abort", kill);
  }
}

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
