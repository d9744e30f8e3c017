import { expect, test } from "bun:test";
import { createSampleSets, findGpuTool, type GpuTool, splitLines } from "../../src/gpu-agent/gpu-tool.ts";
import type { ToolReading } from "../../src/gpu-agent/gpu-entry.ts";
import { createGpuHost, csvOfTwo, type GpuHost, isRunning, prints } from "./gpu-host.ts";

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

/** A test that depends on this silence times out. */
const never = 600_000;

function collect(silenceMs = never) {
  const sets: number[][] = [];
  const arrivals = new Set<() => void>();
  const grouping = createSampleSets(silenceMs, (readings) => {
    sets.push(readings.map(({ index }) => index));
    for (const arrived of arrivals) arrived();
  });
  const add = (...indexes: number[]) => {
    for (const index of indexes) grouping.add({ index, name: "GPU" });
  };
  const nextSet = () => new Promise<void>((resolve) => arrivals.add(resolve));
  return { sets, add, nextSet, end: () => grouping.end() };
}

test("a set ends at the last GPU of the previous round, without a delay", () => {
  const { sets, add } = collect();
  add(0, 1, 2, 0, 1, 2);
  expect(sets).toEqual([
    [0, 1, 2],
    [0, 1, 2],
  ]);
});

test("each line of a single GPU is a set", () => {
  const { sets, add, end } = collect();
  add(0, 0, 0);
  end();
  expect(sets).toEqual([[0], [0], [0]]);
});

test("a set ends after a silence", async () => {
  const { sets, add, nextSet } = collect(5);
  const arrived = nextSet();
  add(0, 1);
  await arrived;
  expect(sets).toEqual([[0, 1]]);
});

test("a GPU that drops out delays its set by no more than the silence", async () => {
  const { sets, add, nextSet } = collect(5);
  add(0, 1, 2, 0, 1, 2);
  const arrived = nextSet();
  add(0, 1);
  await arrived;
  expect(sets.at(-1)).toEqual([0, 1]);
});

test("a round that a silence split is whole again two rounds later", async () => {
  const { sets, add, nextSet } = collect(5);
  let arrived = nextSet();
  add(0, 1);
  await arrived;
  arrived = nextSet();
  add(2, 3);
  await arrived;
  add(0, 1, 2, 3);
  expect(sets).toEqual([
    [0, 1],
    [2, 3],
    [0, 1, 2, 3],
  ]);
});

function bytes(...chunks: (string | Uint8Array)[]) {
  const encoder = new TextEncoder();
  return new ReadableStream<Uint8Array>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(typeof chunk === "string" ? encoder.encode(chunk) : chunk);
      controller.close();
    },
  });
}

test("strips carriage returns", async () => {
  expect(await Array.fromAsync(splitLines(bytes("one\r", "\ntwo\r\n\r\n")))).toEqual(["one", "two", ""]);
});

test("joins a character that is split between two chunks", async () => {
  const euro = new TextEncoder().encode("€\n");
  expect(await Array.fromAsync(splitLines(bytes(euro.slice(0, 1), euro.slice(1))))).toEqual(["€"]);
});

test("drops an unfinished line, whose last number may be cut", async () => {
  expect(await Array.fromAsync(splitLines(bytes("0, GPU, 100\n1, GPU, 1")))).toEqual(["0, GPU, 100"]);
});

test("bounds the memory for a line without an end", async () => {
  const [line] = await Array.fromAsync(splitLines(bytes(...Array<string>(100).fill("x".repeat(1000)), "\n")));
  expect(line?.length).toBeLessThan(10_000);
});
