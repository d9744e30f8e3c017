import { expect, test } from "bun:test";
import { noBackendCounts } from "../../../src/domain/backends.ts";
import { dayNumberOf, minuteOf } from "../../../src/time/seoul.ts";
import { onEachEngine } from "../each-engine.ts";
import { usageIncrement } from "../test-store.ts";

const start = Date.parse("2026-05-02T12:00:00+09:00");
const minute = 60_000;
const sample = (at: number, generatedTokens: number, promptTokens = 0) => ({
  source: "vllm",
  at,
  generatedTokens,
  promptTokens,
});

onEachEngine(({ openTestEngine, openTestStore }) => {
  test("what a backend generated is added up by day, beside what was counted in the same minutes", async () => {
    await using opened = await openTestStore(() => start);
    const { reconciliation, usage } = opened.store;
    const counted = (at: number) =>
      usageIncrement({ keyId: 1, minute: minuteOf(at), inputTokens: 50, outputTokens: 90 });
    await usage.add([counted(start - minute), counted(start), counted(start + minute), counted(start + 3 * minute)]);
    expect(await reconciliation.lastReading()).toBeUndefined();
    await reconciliation.add(sample(start, 1000, 500));
    expect(await reconciliation.days(0)).toEqual([]);
    await reconciliation.add(sample(start + minute, 1100, 560));
    await reconciliation.add(sample(start + 2 * minute, 1200, 600));
    const day = {
      day: dayNumberOf(start),
      generatedTokens: 200,
      promptTokens: 100,
      countedOutputTokens: 180,
      countedInputTokens: 100,
    };
    expect(await reconciliation.days(0)).toEqual([day]);
    expect(await reconciliation.days(dayNumberOf(start) + 1)).toEqual([]);
    expect(await reconciliation.lastReading()).toEqual(sample(start + 2 * minute, 1200, 600));
  });

  test("of a file of models, each backend is compared with what it was sent, and their days add up", async () => {
    await using opened = await openTestStore(() => start);
    const { reconciliation, traffic } = opened.store;
    const of = (backend: string, one: ReturnType<typeof sample>) => reconciliation.add({ ...one, backend });
    const sums = { ...noBackendCounts, requestCount: 1, firstByte: "" };
    const sent = (backend: string, at: number, inputTokens: number, outputTokens: number) => ({
      ...sums,
      backend,
      minute: minuteOf(at),
      inputTokens,
      outputTokens,
    });
    // These are written some seconds late, so the minute before the last sample is left to the next one.
    const backends = [
      sent("gpu-a", start - minute, 10, 40),
      sent("gpu-a", start, 1000, 1000),
      sent("gpu-b", start - minute, 5, 7),
      sent("gpu-b", start - 2 * minute, 1000, 1000),
    ];
    await traffic.add({ latencies: [], outcomes: [], backends });
    await of("gpu-a", sample(start, 1000, 500));
    await of("gpu-b", sample(start, 90, 40));
    await of("gpu-a", sample(start + minute, 1050, 515));
    await of("gpu-b", sample(start + minute, 97, 45));
    const day = dayNumberOf(start);
    const gpuA = { generatedTokens: 50, promptTokens: 15, countedOutputTokens: 40, countedInputTokens: 10 };
    const gpuB = { generatedTokens: 7, promptTokens: 5, countedOutputTokens: 7, countedInputTokens: 5 };
    expect(await reconciliation.backendDays(day, 10)).toEqual([
      { day, backend: "gpu-a", ...gpuA },
      { day, backend: "gpu-b", ...gpuB },
    ]);
    expect(await reconciliation.backendDays(day, 1)).toHaveLength(1);
    expect(await reconciliation.backendDays(day + 1, 10)).toEqual([]);
    const sum = { generatedTokens: 57, promptTokens: 20, countedOutputTokens: 47, countedInputTokens: 15 };
    expect(await reconciliation.days(day)).toEqual([{ day, ...sum }]);
    expect(await reconciliation.lastReading()).toEqual({ source: "vllm", at: start + minute });
  });

  test("a sample of another process and a long pause count nothing twice", async () => {
    await using opened = await openTestEngine(() => start);
    const { reconciliation } = opened.store;
    const generated = async () => (await reconciliation.days(0))[0]?.generatedTokens ?? 0;
    await reconciliation.add(sample(start, 1000));
    await reconciliation.add(sample(start + 5000, 1010));
    expect(await generated()).toBe(0);
    await reconciliation.add(sample(start + minute, 1030));
    expect(await generated()).toBe(30);
    await reconciliation.add(sample(start + 60 * minute, 5000));
    expect(await generated()).toBe(30);
    await reconciliation.add(sample(start + 61 * minute, 5001));
    expect(await generated()).toBe(31);
    await reconciliation.add(sample(start, 9000));
    expect(await generated()).toBe(31);
  });

  test("of several backends behind one address, none is compared with the counters of another", async () => {
    await using opened = await openTestEngine(() => start);
    const { reconciliation } = opened.store;
    const [a, b] = [1_790_000_000.25, 1_790_000_003.5];
    const samples = [
      { ...sample(start, 10_000_000), startedAt: a },
      { ...sample(start + minute, 12_000_000), startedAt: b },
      { ...sample(start + 2 * minute, 10_000_100), startedAt: a },
      { ...sample(start + 3 * minute, 12_000_100), startedAt: b },
    ];
    for (const one of samples) await reconciliation.add(one);
    expect(await reconciliation.days(0)).toEqual([]);
    await reconciliation.add({ ...sample(start + 4 * minute, 12_000_200), startedAt: b });
    expect(await reconciliation.days(0)).toMatchObject([{ generatedTokens: 100 }]);
  });

  test.each([
    ["that generated less", sample(start + minute, 30, 700)],
    ["that read less", sample(start + minute, 1500, 400)],
    ["that did not respond", { ...sample(start + minute, 1500, 600), afterMiss: true }],
    ["of the other kind", { ...sample(start + minute, 1500, 600), source: "sglang" }],
    ["that now reports when it started", { ...sample(start + minute, 1500, 600), startedAt: 1_790_000_000 }],
  ])("a backend %s may have restarted: what was counted since the sample before is left out", async (_, next) => {
    await using opened = await openTestStore(() => start);
    const { reconciliation, usage } = opened.store;
    const counted = (at: number, outputTokens: number) =>
      usageIncrement({ keyId: 1, minute: minuteOf(at), inputTokens: 0, outputTokens });
    await usage.add([counted(start, 400), counted(start + minute, 90)]);
    await reconciliation.add(sample(start, 1000, 500));
    await reconciliation.add(next);
    expect(await reconciliation.days(0)).toEqual([]);
    const { generatedTokens, promptTokens } = next;
    await reconciliation.add({
      ...next,
      afterMiss: false,
      at: start + 2 * minute,
      generatedTokens: generatedTokens + 90,
      promptTokens: promptTokens + 50,
    });
    expect(await reconciliation.days(0)).toMatchObject([
      { generatedTokens: 90, promptTokens: 50, countedOutputTokens: 90 },
    ]);
  });
});
