import { expect, test } from "bun:test";
import { findGpuTool, type GpuTool } from "../../src/gpu-agent/gpu-tool.ts";
import type { ToolReading } from "../../src/gpu-agent/gpu-entry.ts";
import { createGpuHost, type GpuHost, isRunning, prints, csvOfTwo } from "./gpu-host.ts";

/** Longer than any test runs. */
const longTimeoutMs = 20_000;

function findTool(host: GpuHost): GpuTool {
  const tool = findGpuTool(host.env);
  if (tool === undefined) throw new Error("no tool found");
  return tool;
}

/** Watches until this many sets have arrived, or until the tool stops by itself. */
async function watch(
  host: GpuHost,
  { sets: wanted = Infinity, intervalMs = 60_000, outputTimeoutMs = longTimeoutMs } = {},
) {
  const stop = new AbortController();
  const sets: ToolReading[][] = [];
  const toolMessages: string[] = [];
  const failure = await findTool(host)
    .watch({
      env: host.env,
      signal: stop.signal,
      outputTimeoutMs,
      intervalMs,
      onReadings(readings) {
        sets.push(readings);
        if (sets.length >= wanted) stop.abort();
      },
      onToolMessage: (text) => toolMessages.push(text),
    })
    .then(
      () => undefined,
      (error: Error) => error.message,
    );
  return { sets, toolMessages, failure };
}

async function readOnce(host: GpuHost, outputTimeoutMs = longTimeoutMs) {
  return findTool(host).readOnce({ env: host.env, signal: new AbortController().signal, outputTimeoutMs });
}

test("finds no tool if the PATH contains none", () => {
  expect(findGpuTool({ PATH: "/nonexistent" })).toBeUndefined();
  expect(findGpuTool({})).toBeUndefined();
});

test("prefers nvidia-smi to AMD's tool", async () => {
  await using both = await createGpuHost({ "nvidia-smi": "", "amd-smi": "" });
  await using amd = await createGpuHost({ "amd-smi": "" });
  expect([both, amd].map((host) => findTool(host).name)).toEqual(["nvidia-smi", "amd-smi"]);
});

test("starts nvidia-smi once for many rounds, and leaves no process", async () => {
  await using host = await createGpuHost({ "nvidia-smi": prints(csvOfTwo) });
  const { sets } = await watch(host, { sets: 4 });
  expect(sets[3]?.map(({ index }) => index)).toEqual([0, 1]);
  const [pid = 0, ...others] = await host.pids();
  expect(others).toEqual([]);
  expect(isRunning(pid)).toBeFalse();
});

test("a loop that exits with status 0 is a failure, and its last set is passed on", async () => {
  await using host = await createGpuHost({ "nvidia-smi": `${prints(csvOfTwo)}; exit 0` });
  const { sets, failure } = await watch(host);
  expect(sets).toHaveLength(1);
  expect(failure).toContain("exited");
});

test("kills a tool that stops printing", async () => {
  await using host = await createGpuHost({ "nvidia-smi": `trap '' TERM; echo "${csvOfTwo}"; exec sleep 600` });
  const { sets, failure } = await watch(host, { outputTimeoutMs: 200 });
  expect(sets).toHaveLength(1);
  expect(failure).toContain("printed nothing for 0.2 s");
  expect((await host.pids()).map(isRunning)).toEqual([false]);
});

test("does not wait for a grandchild that keeps the pipe open", async () => {
  await using host = await createGpuHost({
    "nvidia-smi": `sleep 20 & echo $! >$folder/grandchild; echo "${csvOfTwo}"; exit 3`,
  });
  const started = performance.now();
  expect((await watch(host)).failure).toContain("status 3");
  expect(performance.now() - started).toBeLessThan(15_000);
  process.kill(Number(await Bun.file(`${host.folder}/grandchild`).text()));
});

test("runs the tool with decimal points in any locale", async () => {
  await using host = await createGpuHost({ "nvidia-smi": `echo "0, GPU $LC_ALL, 1, 2, 3, 4, 5"` });
  host.env["LC_ALL"] = "de_DE.UTF-8";
  expect((await readOnce(host))[0]?.name).toBe("GPU C");
});

test("reads once without the loop mode of nvidia-smi", async () => {
  await using host = await createGpuHost({ "nvidia-smi": prints(csvOfTwo) });
  expect(await readOnce(host)).toHaveLength(2);
  expect((await host.starts())[0]).not.toContain("-lms");
});

test("reading once fails if the tool hangs", async () => {
  await using host = await createGpuHost({ "nvidia-smi": "exec sleep 600" });
  const failure = await readOnce(host, 100).catch((error: Error) => error.message);
  expect(failure).toContain("printed nothing");
});

const amdMetric = JSON.stringify([{ gpu: 0, power: { socket_power: { value: 412, unit: "W" } } }]);
const amdAsic = JSON.stringify([{ gpu: 0, asic: { market_name: "AMD Instinct MI300X" } }]);
const amdSmi = `if [ "$1" = static ]; then echo '${amdAsic}'; else echo '${amdMetric}'; fi`;

test.each(["WARNING: User is missing the render group", "[WARNING] clocks\nINFO: {x}"])(
  "reads the JSON behind other lines: %s",
  async (lines) => {
    await using amd = await createGpuHost({ "amd-smi": `printf '%s\\n' "${lines}"; ${amdSmi}` });
    expect((await readOnce(amd))[0]).toMatchObject({ name: "AMD Instinct MI300X", power_draw_w: 412 });
  },
);

test("queries amd-smi for the names once and for the readings every round", async () => {
  await using host = await createGpuHost({ "amd-smi": amdSmi });
  const { sets } = await watch(host, { sets: 3, intervalMs: 10 });
  expect(sets[2]?.[0]).toMatchObject({ name: "AMD Instinct MI300X", power_draw_w: 412 });
  expect((await host.starts()).map((start) => start.split(" ")[0])).toEqual(["static", "metric", "metric", "metric"]);
});

test("reports the message of an amd-smi without permissions", async () => {
  await using host = await createGpuHost({ "amd-smi": "echo 'user is missing the render group' >&2; exit 255" });
  expect((await watch(host)).failure).toContain("user is missing the render group");
});

test("an amd-smi that prints no JSON is a failure, not a crash", async () => {
  await using host = await createGpuHost({ "amd-smi": "echo WARNING" });
  expect((await watch(host)).failure).toContain("WARNING");
});
