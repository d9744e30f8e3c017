import { expect, test } from "bun:test";
import { rename } from "node:fs/promises";
import { createBackoff } from "../../src/time/backoff.ts";
import type { SampleSet } from "../../src/gpu-agent/gpu-entry.ts";
import { findGpuTool } from "../../src/gpu-agent/gpu-tool.ts";
import { readGpus } from "../../src/gpu-agent/read-gpus.ts";
import { createGpuHost, type GpuHost, printsForEver, turnOfTwo } from "./gpu-host.ts";

async function read(host: GpuHost, { sets: wanted = 1, gpuIdOffset = 0, hangMs = 20_000 } = {}) {
  const stop = new AbortController();
  const tool = findGpuTool(host.env);
  if (tool === undefined) throw new Error("no tool found");
  const said: string[] = [];
  const sets: SampleSet[] = [];
  const waits: number[] = [];
  const complaints: string[] = [];
  const backoff = createBackoff(1, 4, () => 1);
  await readGpus({
    tool,
    env: host.env,
    signal: stop.signal,
    intervalMs: 60_000,
    hangMs,
    gpuIdOffset,
    backoff: { ...backoff, next: () => waits[waits.push(backoff.next()) - 1] ?? 0 },
    say: (level, words) => {
      said.push(`${level}: ${words}`);
      if (wanted === 0) stop.abort();
    },
    onComplaint: (words) => complaints.push(words),
    onSamples(samples) {
      sets.push(samples);
      if (sets.length >= wanted) stop.abort();
    },
  });
  return { said, sets, waits, complaints };
}

test("a tool that dies is started again, later from time to time, until it reads", async () => {
  await using host = await createGpuHost({
    "nvidia-smi": `[ "$starts" -ge 5 ] || { echo "No devices were found"; exit 6; }; ${printsForEver(turnOfTwo)}`,
  });
  const { said, waits } = await read(host);
  expect(waits.slice(0, 4)).toEqual([1, 2, 4, 4]);
  expect(new Set(said.slice(0, -1)).size).toBe(1);
  expect(said[0]).toContain("warn: nvidia-smi gives no readings: the NVIDIA driver sees no GPU");
  expect(said.at(-1)).toBe("info: Reading 2 GPUs with nvidia-smi");
});

test("a tool that hangs is started again", async () => {
  await using host = await createGpuHost({
    "nvidia-smi": `[ "$starts" -ge 2 ] || exec sleep 600; ${printsForEver(turnOfTwo)}`,
  });
  const { said, sets } = await read(host, { hangMs: 300 });
  expect(said[0]).toContain("printed nothing");
  expect(sets).toHaveLength(1);
});

test("the wait before a restart is short again after the tool has worked", async () => {
  await using host = await createGpuHost({ "nvidia-smi": `echo "${turnOfTwo}"` });
  const { waits } = await read(host, { sets: 4 });
  expect(waits.slice(0, 3)).toEqual([1, 1, 1]);
});

test("the offset is added, and GPUs beyond the last id are left out with a warning", async () => {
  await using host = await createGpuHost({ "nvidia-smi": printsForEver(turnOfTwo) });
  const { sets, said } = await read(host, { gpuIdOffset: 255 });
  expect(sets[0]?.map(({ gpu_id }) => gpu_id)).toEqual([255]);
  expect(said[0]).toContain("warn: Reading 2 GPUs with nvidia-smi, 1 left out");
});

test("a complaint that comes with every turn is passed on once", async () => {
  const lost = "Unable to determine the device handle for GPU 0000:3B:00.0: GPU is lost.";
  await using host = await createGpuHost({ "nvidia-smi": printsForEver(`${turnOfTwo}\n${lost}`) });
  expect((await read(host, { sets: 4 })).complaints).toEqual([lost]);
});

/** What is said about sets of these sizes. */
async function saidOfSets(...sizes: number[]): Promise<string[]> {
  const stop = new AbortController();
  const said: string[] = [];
  const readingsOf = (size: number) => Array.from({ length: size }, (_, index) => ({ index, name: "GPU" }));
  await readGpus({
    tool: {
      name: "nvidia-smi",
      readOnce: async () => [],
      watch: async ({ onReadings }) => {
        for (const size of sizes) onReadings(readingsOf(size));
        stop.abort();
      },
    },
    env: {},
    signal: stop.signal,
    intervalMs: 1,
    hangMs: 1,
    gpuIdOffset: 0,
    backoff: createBackoff(1, 4),
    say: (_, words) => said.push(words),
    onComplaint: () => undefined,
    onSamples: () => undefined,
  });
  return [...new Set(said)];
}

test("sets that are torn apart differently each time do not fill the log", async () => {
  expect(await saidOfSets(3, 5, 3, 5, 3, 5)).toEqual(["Reading 3 GPUs with nvidia-smi"]);
});

test("a GPU that is gone for two turns is told", async () => {
  expect(await saidOfSets(2, 2, 1, 1)).toEqual(["Reading 2 GPUs with nvidia-smi", "Reading 1 GPU with nvidia-smi"]);
});

test("a tool that an update has taken away is started again once it is back", async () => {
  await using host = await createGpuHost({ "nvidia-smi": `mv "$0" "$0.away"; echo "${turnOfTwo}"` });
  const path = `${host.folder}/bin/nvidia-smi`;
  const reading = read(host, { sets: 2 });
  while (!(await Bun.file(`${path}.away`).exists())) await Bun.sleep(5);
  await Bun.sleep(50);
  await rename(`${path}.away`, path);
  const { said } = await reading;
  expect(said.some((words) => words.includes("cannot be started (ENOENT)"))).toBeTrue();
});

test("a stop while the tool is failing says nothing more", async () => {
  await using host = await createGpuHost({ "nvidia-smi": "exit 9" });
  expect((await read(host, { sets: 0 })).said).toHaveLength(1);
});

test("a stop while a tool is at work is no failure of the tool", async () => {
  await using host = await createGpuHost({ "amd-smi": "exec sleep 600" });
  const tool = findGpuTool(host.env);
  if (tool === undefined) throw new Error("no tool found");
  const stop = new AbortController();
  const said: string[] = [];
  const reading = readGpus({
    tool,
    env: host.env,
    signal: stop.signal,
    intervalMs: 60_000,
    hangMs: 20_000,
    gpuIdOffset: 0,
    backoff: createBackoff(1, 4),
    say: (_, words) => said.push(words),
    onComplaint: () => undefined,
    onSamples: () => undefined,
  });
  while ((await host.pids()).length === 0) await Bun.sleep(5);
  stop.abort();
  await reading;
  expect(said).toEqual([]);
});
