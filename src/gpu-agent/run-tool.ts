import type { Environment } from "../config.ts";
import { wait } from "../time/wait.ts";

/** The tool gave no readings; the message says why, in words for the operator. */
export class ToolError extends Error {
  override name = "ToolError";
}

export interface ToolRun {
  /** Program and arguments. */
  command: readonly string[];
  env: Environment;
  /** Kills the tool. */
  signal: AbortSignal;
  /** A tool that shows no sign of life for so long hangs in its driver, and is killed. */
  hangMs: number;
  /** Reads what the tool prints, and calls `alive` at each sign of life. */
  read: (stdout: ReadableStream<Uint8Array>, alive: () => void) => Promise<void>;
}

/**
 * Runs the tool until it ends by itself, hangs or is stopped. It is dead when this resolves, whatever happened.
 * @returns its exit status, and what it printed on standard error
 * @throws ToolError where it hung, or could not be started
 */
export async function runTool(run: ToolRun): Promise<{ status: number; complaint: string }> {
  const child = spawnTool(run);
  let hung = false;
  // A query holds nothing that would have to be put away, and a hanging one ignores SIGTERM.
  const kill = (): void => child.kill("SIGKILL");
  const watchdog = setTimeout(() => {
    hung = true;
    kill();
  }, run.hangMs);
  run.signal.addEventListener("abort", kill, { once: true });
  if (run.signal.aborted) kill();
  try {
    const complaint = readComplaint(child.stderr);
    const output = run.read(child.stdout, () => watchdog.refresh());
    output.catch(kill);
    const status = await child.exited;
    // What it printed last may still be in the pipe; but a grandchild may hold the pipe open for ever.
    await Promise.race([Promise.all([output, complaint]), wait(1000, run.signal)]);
    if (hung) throw new ToolError(`${run.command[0]} printed nothing for ${run.hangMs / 1000} s and was ended`);
    return { status, complaint: await Promise.race([complaint, Promise.resolve("")]) };
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
      // A comma as decimal separator would be read as the end of a cell.
      env: { ...env, LC_ALL: "C" },
    });
  } catch (error) {
    // It was there when the pusher started: an update of the driver takes it away for a while.
    const code = error instanceof Error && "code" in error ? String(error.code) : "unknown error";
    throw new ToolError(`${command[0]} cannot be started (${code})`);
  }
}

/** The first line that says something; the rest is read so that the tool never waits for us. */
async function readComplaint(stderr: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of stderr) {
    if (text.length < 2000) text += decoder.decode(chunk, { stream: true });
  }
  return text.trim().split("\n")[0]?.trim() ?? "";
}
