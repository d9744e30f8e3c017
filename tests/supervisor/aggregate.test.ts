import { afterEach, expect, test } from "bun:test";
import { createMetrics, type Metrics } from "../../src/telemetry/metrics.ts";
import { type Aggregate, createAggregate } from "../../src/supervisor/aggregate.ts";
import type { StatsSource } from "../../src/telemetry/stats.ts";
import { steadyValues } from "../support/steady-values.ts";

const opened: Metrics[] = [];
afterEach(() => {
  for (const metrics of opened.splice(0)) metrics.close();
});

interface TestProcess extends StatsSource {
  count(requests: number): void;
  /** From now on its methods reject. */
  kill(): void;
  metricsNow: Metrics;
}

function startProcess(): TestProcess {
  const waiting = { requests: 0, keys: 0, sinceMs: 0 };
  const metrics = createMetrics({
    version: "1",
    commit: "c",
    perKey: true,
    waiting: () => waiting,
    refusedRequests: () => 5,
    problems: () => [],
    areLimitsDegraded: () => false,
    inFlight: () => 2,
    slow: steadyValues,
    droppedRequests: () => 0,
  });
  opened.push(metrics);
  let killed = false;
  const reply = async <T>(read: () => T | Promise<T>): Promise<T> => {
    if (killed) throw new Error("the other process is gone");
    return read();
  };
  return {
    metrics: () => reply(async () => structuredClone(await metrics.snapshot())),
    inFlight: () => reply(() => 2),
    running: () => reply(() => []),
    endRequest: () => reply(() => false),
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

function start(counts: number[]): { aggregate: Aggregate; started: TestProcess[] } {
  const aggregate = createAggregate();
  const started = counts.map((count) => {
    const process = startProcess();
    process.count(count);
    aggregate.add(process);
    return process;
  });
  return { aggregate, started };
}

test("uses the latest snapshot of a process that does not reply", async () => {
  const { aggregate, started } = start([1, 2]);
  await aggregate.metricsText();
  started[0]?.kill();
  started[1]?.count(5);
  expect(stored(await aggregate.metricsText())).toBe(8);
  expect(await aggregate.inFlight()).toBe(2);
});

test("counts the final metrics of a process that was never queried", async () => {
  const { aggregate, started } = start([1, 20]);
  const [leaving] = started;
  if (leaving === undefined) throw new Error("no process");
  leaving.count(6);
  aggregate.setFinalMetrics(leaving, await leaving.metrics());
  leaving.kill();
  expect(stored(await aggregate.metricsText())).toBe(27);
  await aggregate.remove(leaving);
  expect(stored(await aggregate.metricsText())).toBe(27);
});

test("counts a process once when a scrape coincides with its exit", async () => {
  const { aggregate, started } = start([1, 20, 300, 4000]);
  await aggregate.metricsText();
  const scrapes: Promise<string>[] = [];
  for (const process of started) {
    process.kill();
    scrapes.push(aggregate.metricsText());
    void aggregate.remove(process);
    scrapes.push(aggregate.metricsText());
  }
  for (const text of await Promise.all(scrapes)) expect(stored(text)).toBe(4321);
});

test("does not query a process after its final metrics", async () => {
  const { aggregate, started } = start([1, 2]);
  const [leaving] = started as [TestProcess];
  aggregate.setFinalMetrics(leaving, structuredClone(await leaving.metricsNow.snapshot()));
  // Nothing that it would report now is counted, and nobody waits for it.
  leaving.count(100);
  expect(stored(await aggregate.metricsText())).toBe(3);
  expect(await aggregate.inFlight()).toBe(2);
});

test("ignores metrics that arrive after their process has exited", async () => {
  const { aggregate } = start([1]);
  const exiting = startProcess();
  const late = Promise.withResolvers<void>();
  const source: StatsSource = { ...exiting, metrics: () => late.promise.then(exiting.metrics) };
  aggregate.add(source);
  const scrape = aggregate.metricsText();
  await aggregate.remove(source);
  late.resolve();
  await scrape;
  expect(processes(await aggregate.metricsText())).toBe(1);
});
