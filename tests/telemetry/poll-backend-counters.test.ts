import { afterEach, beforeEach, expect, jest, test } from "bun:test";
import type { BackendCounters } from "../../src/telemetry/backend-counters.ts";
import { pollBackendCounters, pollBackends } from "../../src/telemetry/poll-backend-counters.ts";
import { memoryLog } from "../store/test-store.ts";
import { backendOf, fileCatalog, replaceableCatalog } from "../support/catalog.ts";

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

const minute = 60_000;

async function pass(ms: number): Promise<void> {
  jest.advanceTimersByTime(ms);
  for (let n = 0; n < 10; n++) await Promise.resolve();
}

function startReading() {
  const written: (BackendCounters & { afterMiss: boolean })[] = [];
  const backend = { text: "vllm:generation_tokens_total 5" as string | undefined, reads: 0, restarts: 0 };
  const stop = pollBackendCounters({
    fetchMetrics: async () => {
      backend.reads++;
      if (backend.text === "fails") throw new Error("connection refused");
      return backend.text;
    },
    write: async (counters) => void written.push(counters),
    onRestarted: () => backend.restarts++,
    log: memoryLog().log,
  });
  return { written, backend, stop };
}

test("a backend with counters is read once a minute", async () => {
  const { written, backend, stop } = startReading();
  await pass(minute);
  await pass(minute);
  expect([backend.reads, written.length]).toEqual([2, 2]);
  stop();
  await pass(60 * minute);
  expect([backend.reads, jest.getTimerCount()]).toEqual([2, 0]);
});

test("a backend whose counters fell, or that names another start, has restarted", async () => {
  const { backend, stop } = startReading();
  const after = async (text: string | undefined): Promise<number> => {
    backend.text = text;
    await pass(minute);
    return backend.restarts;
  };
  const counters = (generated: number, prompt: number, startedAt = 1700) =>
    [
      `vllm:generation_tokens_total ${generated}`,
      `vllm:generation_tokens_created ${startedAt}`,
      `vllm:prompt_tokens_total ${prompt}`,
    ].join("\n");
  expect(await after(counters(50, 500))).toBe(0);
  expect(await after(counters(50, 500))).toBe(0);
  expect(await after(counters(60, 700))).toBe(0);
  expect(await after(counters(5, 700))).toBe(1);
  expect(await after(undefined)).toBe(1);
  expect(await after(counters(5, 600))).toBe(2);
  expect(await after(counters(900, 9000, 1800))).toBe(3);
  stop();
});

test.each([undefined, "fails", "other"])(
  "a backend without counters (%p) is read every quarter of an hour",
  async (text) => {
    const { written, backend, stop } = startReading();
    backend.text = text;
    for (let n = 0; n < 10; n++) await pass(minute);
    expect(backend.reads).toBe(10);
    await pass(14 * minute);
    expect(backend.reads).toBe(10);
    await pass(minute);
    await pass(15 * minute);
    expect([backend.reads, written.length]).toEqual([12, 0]);
    stop();
  },
);

test("a backend that restarts is read again in the minute after it is up", async () => {
  const { written, backend, stop } = startReading();
  await pass(minute);
  backend.text = "fails";
  for (let n = 0; n < 5; n++) await pass(minute);
  backend.text = "vllm:generation_tokens_total 1";
  await pass(minute);
  await pass(minute);
  expect(written.map(({ generatedTokens, afterMiss }) => [generatedTokens, afterMiss])).toEqual([
    [5, false],
    [1, true],
    [1, false],
  ]);
  stop();
});

test("each backend of the catalog is polled, and a change of the file changes only what it is about", () => {
  const [a, b] = [backendOf("gpu-a"), backendOf("gpu-b")];
  const catalog = replaceableCatalog(fileCatalog([a, b], []));
  const events: string[] = [];
  const stop = pollBackends(catalog, ({ name, baseUrl }) => {
    events.push(`polls ${name} at ${baseUrl}`);
    return () => void events.push(`leaves ${name} at ${baseUrl}`);
  });
  const since = (): string[] => events.splice(0);
  expect(since()).toEqual(["polls gpu-a at http://gpu-a.example", "polls gpu-b at http://gpu-b.example"]);
  catalog.replace(fileCatalog([{ ...a, maxConcurrency: 3 }, b, backendOf("gpu-c")], []));
  expect(since()).toEqual(["polls gpu-c at http://gpu-c.example"]);
  catalog.replace(fileCatalog([{ ...a, baseUrl: "http://moved.example" }, backendOf("gpu-c")], []));
  expect(since()).toEqual([
    "leaves gpu-a at http://gpu-a.example",
    "leaves gpu-b at http://gpu-b.example",
    "polls gpu-a at http://moved.example",
  ]);
  stop();
  expect(since().toSorted()).toEqual(["leaves gpu-a at http://moved.example", "leaves gpu-c at http://gpu-c.example"]);
  catalog.replace(fileCatalog([b], []));
  expect(since()).toEqual([]);
});
