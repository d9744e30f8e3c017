import { expect, test } from "bun:test";
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
    expect(await reconciliation.lastSample()).toBeUndefined();
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
    expect(await reconciliation.lastSample()).toEqual(sample(start + 2 * minute, 1200, 600));
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
