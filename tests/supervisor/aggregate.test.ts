import { afterEach, expect, test } from "bun:test";
import { createMetrics, type Metrics } from "../../src/telemetry/metrics.ts";
import { type Counted, createAggregate } from "../../src/supervisor/aggregate.ts";

const opened: Metrics[] = [];
afterEach(() => {
  for (const metrics of opened.splice(0)) metrics.close();
});

interface TestProcess extends Counted {
  count(requests: number): void;
  /** It does not answer from here on. */
  kill(): void;
  metricsNow: Metrics;
}

function startProcess(): TestProcess {
  const waiting = { requests: 0, keys: 0, sinceMs: 0 };
  const metrics = createMetrics({ version: "1", commit: "c", perKey: true, waiting: () => waiting, inFlight: () => 2 });
  opened.push(metrics);
  let killed = false;
  const answer = async <T>(read: () => T | Promise<T>): Promise<T> => {
    if (killed) throw new Error("the other process is gone");
    return read();
  };
  return {
    metrics: () => answer(async () => structuredClone(await metrics.snapshot())),
    inFlight: () => answer(() => 2),
    metricsNow: metrics,
    count(requests) {
      for (let n = 0; n < requests; n++) metrics.gpuSamplesReceived(1, 0);
    },
    kill() {
      killed = true;
    },
  };
}

const stored = (text: string): number =>
  Number(/^tollgate_gpu_samples_total\{result="stored"\} (\d+)$/m.exec(text)?.[1] ?? Number.NaN);
const processes = (text: string): number => Number(/^tollgate_processes (\d+)$/m.exec(text)?.[1] ?? Number.NaN);

function start(counts: number[]): { sums: ReturnType<typeof createAggregate>; started: TestProcess[] } {
  const sums = createAggregate();
  const started = counts.map((count) => {
    const process = startProcess();
    process.count(count);
    sums.add(process);
    return process;
  });
  return { sums, started };
}

test("what all processes count is added up", async () => {
  const { sums } = start([1, 2, 3]);
  const text = await sums.metricsText();
  expect(stored(text)).toBe(6);
  expect(processes(text)).toBe(3);
  expect(await sums.inFlight()).toBe(6);
});

test("a process that does not answer stands with what it said last", async () => {
  const { sums, started } = start([1, 2]);
  await sums.metricsText();
  started[0]?.kill();
  started[1]?.count(5);
  expect(stored(await sums.metricsText())).toBe(8);
  expect(await sums.inFlight()).toBe(2);
});

test("a counter never falls when a process ends, and its gauges go with it", async () => {
  const { sums, started } = start([1, 20, 300]);
  await sums.metricsText();
  for (const [index, process] of started.entries()) {
    process.kill();
    await sums.remove(process);
    const text = await sums.metricsText();
    expect(stored(text)).toBe(321);
    if (index < started.length - 1) expect(processes(text)).toBe(started.length - 1 - index);
  }
});

test("the last word of a process counts, though nobody had asked it before", async () => {
  const { sums, started } = start([1, 20]);
  const [leaving] = started;
  if (leaving === undefined) throw new Error("No process.");
  leaving.count(6);
  sums.keep(leaving, await leaving.metrics());
  leaving.kill();
  expect(stored(await sums.metricsText())).toBe(27);
  await sums.remove(leaving);
  expect(stored(await sums.metricsText())).toBe(27);
});

test("a process is counted once by a scrape that meets its end", async () => {
  const { sums, started } = start([1, 20, 300, 4000]);
  await sums.metricsText();
  const scrapes: Promise<string>[] = [];
  for (const process of started) {
    process.kill();
    scrapes.push(sums.metricsText());
    void sums.remove(process);
    scrapes.push(sums.metricsText());
  }
  for (const text of await Promise.all(scrapes)) expect(stored(text)).toBe(4321);
});
