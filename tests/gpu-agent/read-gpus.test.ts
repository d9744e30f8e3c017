import { expect, test } from "bun:test";
import { renameSync } from "node:fs";
import { createBackoff } from "../../src/time/wait.ts";
import type { SampleSet } from "../../src/gpu-agent/gpu-entry.ts";
import { readGpus } from "../../src/gpu-agent/read-gpus.ts";
import { createGpuHost, csvOfTwo, type GpuHost, prints, readGpusOf } from "./gpu-host.ts";

interface ReadOptions {
  sets?: number;
  gpuIdOffset?: number;
  outputTimeoutMs?: number;
  onLog?: (entry: string) => void;
}

async function read(host: GpuHost, options: ReadOptions = {}) {
  const { sets: wanted = 1, gpuIdOffset = 0, outputTimeoutMs = 20_000, onLog } = options;
  const stop = new AbortController();
  const logged: string[] = [];
  const sets: SampleSet[] = [];
  const waits: number[] = [];
  const toolMessages: string[] = [];
  const backoff = createBackoff(1, 4, () => 1);
  await readGpusOf(host, stop.signal, {
    outputTimeoutMs,
    gpuIdOffset,
    backoff: { ...backoff, next: () => waits[waits.push(backoff.next()) - 1] ?? 0 },
    logOnChange: (level, message, fields) => {
      const entry = `${level}: ${message} ${JSON.stringify(fields)}`;
      logged.push(entry);
      onLog?.(entry);
      if (wanted === 0) stop.abort();
    },
    onToolMessage: (text) => toolMessages.push(text),
    onSamples(samples) {
      sets.push(samples);
      if (sets.length >= wanted) stop.abort();
    },
  });
  return { logged, sets, waits, toolMessages };
}

test("restarts a tool that fails, after longer and longer waits, until it succeeds", async () => {
  await using host = await createGpuHost({
    "nvidia-smi": `[ "$starts" -ge 5 ] || { echo "No devices were found"; exit 6; }; ${prints(csvOfTwo)}`,
  });
  const { logged, waits } = await read(host);
  expect(waits.slice(0, 4)).toEqual([1, 2, 4, 4]);
  expect(new Set(logged.slice(0, -1)).size).toBe(1);
  expect(logged[0]).toStartWith("warn: Cannot read GPUs; restarting the tool ");
  expect(logged[0]).toContain("nvidia-smi gave no readings: the NVIDIA driver sees no GPU");
  expect(logged.at(-1)).toBe('info: Reading GPUs {"tool":"nvidia-smi","gpus":2}');
});

test("resets the wait after the tool has worked", async () => {
  await using host = await createGpuHost({ "nvidia-smi": `${prints(csvOfTwo)}; exit 0` });
  const { waits } = await read(host, { sets: 4 });
  expect(waits.slice(0, 3)).toEqual([1, 1, 1]);
});

test("passes on a message that the tool repeats once", async () => {
  const lost = "Unable to determine the device handle for GPU 0000:3B:00.0: GPU is lost.";
  await using host = await createGpuHost({ "nvidia-smi": prints(`${csvOfTwo}\n${lost}`) });
  expect((await read(host, { sets: 4 })).toolMessages).toEqual([lost]);
});

/** The GPU counts that are logged for sets of these sizes. */
async function loggedCounts(...sizes: number[]): Promise<unknown[]> {
  const stop = new AbortController();
  const counts = new Set<unknown>();
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
    outputTimeoutMs: 1,
    gpuIdOffset: 0,
    backoff: createBackoff(1, 4),
    logOnChange: (_level, _message, fields) => counts.add(fields["gpus"]),
    onToolMessage: () => undefined,
    onSamples: () => undefined,
  });
  return [...counts];
}

test("logs no count while sets are split differently each time", async () => {
  expect(await loggedCounts(3, 5, 3, 5, 3, 5)).toEqual([3]);
});

test("logs a GPU that is missing twice", async () => {
  expect(await loggedCounts(2, 2, 1, 1)).toEqual([2, 1]);
});

test("restarts a tool that an update removed and put back", async () => {
  await using host = await createGpuHost({ "nvidia-smi": `mv "$0" "$0.away"; ${prints(csvOfTwo)}; exit 0` });
  const path = `${host.folder}/bin/nvidia-smi`;
  const { logged } = await read(host, {
    sets: 2,
    onLog: (entry) => {
      if (entry.includes("cannot be started (ENOENT)")) renameSync(`${path}.away`, path);
    },
  });
  expect(logged.filter((entry) => entry.includes("ENOENT"))).toHaveLength(1);
});
