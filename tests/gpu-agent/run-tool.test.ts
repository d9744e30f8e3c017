import { afterEach, expect, spyOn, test } from "bun:test";
import { runTool, ToolError } from "../../src/gpu-agent/run-tool.ts";
import { pollUntil } from "../support/poll-until.ts";
import { createGpuHost, csvOfTwo, prints, readGpusOf } from "./gpu-host.ts";

/** Processes that a test has to end, because SIGKILL has no effect on them. */
const stuck: Bun.Subprocess[] = [];
function endStuck(): void {
  for (const { pid } of stuck.splice(0)) process.kill(pid, "SIGKILL");
}

const realSpawn = Bun.spawn.bind(Bun);

/** From now on tools are like one that is stuck in its driver: a signal has no effect. */
const stickTools = () =>
  spyOn(Bun, "spawn").mockImplementation(((command: string[], options: object) => {
    const child = realSpawn(command, options);
    stuck.push(child);
    return Object.assign(child, { kill: () => undefined });
  }) as typeof Bun.spawn);

let spawning: ReturnType<typeof stickTools>;
afterEach(() => {
  spawning.mockRestore();
  endStuck();
});

const sleeper = { command: ["sleep", "600"], env: { PATH: process.env["PATH"] }, outputTimeoutMs: 100 };
const readNothing = async (): Promise<void> => {};

test("gives up on a tool that cannot be killed", async () => {
  spawning = stickTools();
  const signal = new AbortController().signal;
  const failure: unknown = await runTool({ ...sleeper, signal, read: readNothing }).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(ToolError);
  expect(failure).toHaveProperty("message", "sleep printed nothing for 0.1 s and cannot be killed");
});

test("a stop does not wait for a tool that cannot be killed", async () => {
  spawning = stickTools();
  const stop = new AbortController();
  const running = runTool({ ...sleeper, outputTimeoutMs: 60_000, signal: stop.signal, read: readNothing });
  stop.abort();
  expect(await running.catch((error: unknown) => error)).toHaveProperty("message", "sleep cannot be killed");
});

test("starts no second tool beside one that cannot be killed, logs that once, and goes on when it has exited", async () => {
  await using host = await createGpuHost({
    "nvidia-smi": `[ "$starts" -ge 2 ] || exec sleep 600; ${prints(csvOfTwo)}`,
  });
  spawning = stickTools();
  const stop = new AbortController();
  const logged: string[] = [];
  const reading = readGpusOf(host, stop.signal, {
    outputTimeoutMs: 300,
    logOnChange: (level, message, { reason }) => logged.push(`${level}: ${message}${reason ? ` (${reason})` : ""}`),
    onSamples: () => stop.abort(),
  });
  await pollUntil(() => logged.length > 0);
  // Many times the longest wait before a restart.
  await Bun.sleep(200);
  expect(await host.starts()).toHaveLength(1);
  spawning.mockRestore();
  endStuck();
  await reading;
  expect(await host.starts()).toHaveLength(2);
  expect(logged).toEqual([
    `warn: Cannot read GPUs; waiting for the stuck tool to exit (${host.folder}/bin/nvidia-smi printed nothing for 0.3 s and cannot be killed)`,
    "info: Reading GPUs",
  ]);
});
