import { expect, test } from "bun:test";
import fc from "fast-check";
import type { Store } from "../../../src/store/store.ts";
import type { ChartColumns, ChartRange, UsageMetric } from "../../../src/store/reports/contract.ts";
import { bucketFloor, minuteOf } from "../../../src/time/seoul.ts";
import { onEachEngine } from "../each-engine.ts";
import { createKeys, readBody, usageIncrement } from "../test-store.ts";
import type { UsageIncrement } from "../../../src/domain/usage.ts";

const start = minuteOf(Date.parse("2026-05-01T00:00:00+09:00"));
const clock = () => (start + 5 * 1440) * 60_000;

const names = ["Alpha", "beta", "Ärzte", "delta"];

const rangeOf = (fields: Partial<ChartRange> = {}): ChartRange => ({
  from: start,
  to: start + 1440,
  bucketMinutes: 60,
  metric: "output",
  top: 2,
  listed: 100,
  ...fields,
});

const readChart = (store: Pick<Store, "usage">, range: ChartRange): Promise<ChartColumns> =>
  readBody(store.usage.chart(range));

type Counted = Pick<UsageIncrement, "requestCount" | "inputTokens" | "outputTokens">;

const valueOf = (one: Counted, metric: UsageMetric): number =>
  ({
    requests: one.requestCount,
    input: one.inputTokens,
    output: one.outputTokens,
    total: one.inputTokens + one.outputTokens,
  })[metric];

/** The simple, slow way to compute the columns of some keys. */
function expectedColumn(increments: readonly UsageIncrement[], keyIds: readonly number[], range: ChartRange): number[] {
  const values = Array.from({ length: (range.to - range.from) / range.bucketMinutes }, () => 0);
  for (const one of increments) {
    if (!keyIds.includes(one.keyId) || one.minute < range.from || one.minute >= range.to) continue;
    const index = Math.floor((one.minute - range.from) / range.bucketMinutes);
    values[index] = (values[index] ?? 0) + valueOf(one, range.metric);
  }
  return values;
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

const anyIncrement = fc.record({
  keyId: fc.integer({ min: 1, max: 4 }),
  minute: fc.integer({ min: start, max: start + 3 * 1440 }),
  requestCount: fc.integer({ min: 1, max: 50 }),
  inputTokens: fc.integer({ min: 0, max: 1_000_000 }),
  outputTokens: fc.integer({ min: 0, max: 100_000 }),
});

const anyRange = fc
  .record({
    at: fc.integer({ min: start - 2000, max: start + 3 * 1440 }),
    buckets: fc.integer({ min: 1, max: 60 }),
    bucketMinutes: fc.oneof(fc.integer({ min: 1, max: 1440 }), fc.constantFrom(1, 5, 60, 90, 120, 720, 1440)),
    metric: fc.constantFrom<UsageMetric>("requests", "input", "output", "total"),
    top: fc.integer({ min: 0, max: 5 }),
    keyId: fc.option(fc.integer({ min: 1, max: 5 }), { nil: undefined, freq: 8 }),
  })
  .map(({ at, buckets, ...range }) => {
    const from = bucketFloor(at, range.bucketMinutes);
    return rangeOf({ ...range, from, to: from + buckets * range.bucketMinutes });
  });

onEachEngine(({ openTestEngine }) => {
  test("for any usage and range, the chart has the sums of the minutes in the range", async () => {
    await using opened = await openTestEngine(clock);
    await fc.assert(
      fc.asyncProperty(fc.array(anyIncrement, { maxLength: 60 }), anyRange, async (partial, range) => {
        await opened.clear();
        await createKeys(opened.store, names);
        const increments = partial.map(usageIncrement);
        await opened.store.usage.add(increments);
        const chart = await readChart(opened.store, range);

        const inRange = increments.filter(
          ({ keyId, minute }) =>
            minute >= range.from && minute < range.to && (range.keyId === undefined || keyId === range.keyId),
        );
        const totals = [1, 2, 3, 4]
          .map((id) => ({ id, of: inRange.filter(({ keyId }) => keyId === id) }))
          .filter(({ of }) => of.length > 0)
          .map(({ id, of }) => ({ id, total: sum(of.map((one) => valueOf(one, range.metric))) }))
          .toSorted((a, b) => b.total - a.total || a.id - b.id);
        expect(chart.listed.id).toEqual(totals.map(({ id }) => id));
        expect(chart.listed.name).toEqual(totals.map(({ id }) => names[id - 1] ?? ""));
        expect(chart.count).toBe(totals.length);

        const shown = totals.map(({ id }) => id);
        expect(chart.series.map(({ id }) => id)).toEqual(shown.slice(0, range.top));
        for (const { id, values } of chart.series) expect(values).toEqual(expectedColumn(inRange, [Number(id)], range));
        const rest = shown.slice(range.top);
        expect(chart.other.count).toBe(rest.length);
        expect(chart.other.values).toEqual(rest.length === 0 ? [] : expectedColumn(inRange, rest, range));
        const counted = inRange.filter(({ keyId }) => shown.includes(keyId));
        expect([chart.requestCount, chart.inputTokens, chart.outputTokens]).toEqual([
          sum(counted.map((one) => one.requestCount)),
          sum(counted.map((one) => one.inputTokens)),
          sum(counted.map((one) => one.outputTokens)),
        ]);
      }),
      { numRuns: 60 },
    );
  });

  test("what a caller has, and the buckets since then, are the whole chart", async () => {
    await using opened = await openTestEngine(clock);
    await fc.assert(
      fc.asyncProperty(
        fc.array(anyIncrement, { maxLength: 60 }),
        anyRange,
        fc.integer({ min: start - 3000, max: start + 4 * 1440 }),
        async (partial, range, minute) => {
          await opened.clear();
          await createKeys(opened.store, names);
          await opened.store.usage.add(partial.map(usageIncrement));
          const whole = await readChart(opened.store, range);
          const ids = whole.series.map(({ id }) => id).toReversed();
          const since = await readChart(opened.store, { ...range, known: { ids, minute } });
          const first = (since.firstMinute - range.from) / range.bucketMinutes;
          expect(Number.isInteger(first)).toBe(true);
          if (minute >= range.from && minute < range.to)
            expect(first).toBe(Math.floor((minute - range.from) / range.bucketMinutes));
          expect({ ...since, firstMinute: whole.firstMinute }).toEqual({
            ...whole,
            series: whole.series.map(({ id, values }) => ({ id, values: values.slice(first) })),
            other: { ...whole.other, values: whole.other.values.slice(first) },
          });
        },
      ),
      { numRuns: 40 },
    );
  });

  test("by team, user or model, and with any filter, a chart has the sums of what is left", async () => {
    await using opened = await openTestEngine(clock);
    const { store } = opened;
    for (const fields of [{ owner: "Kim", tags: ["batch", "night"] }, { tags: ["batch"] }, {}, {}])
      await store.keys.create({ name: "k", key: `key ${crypto.randomUUID()}`, createdAt: 0, ...fields });
    const one = (keyId: number, fields: Partial<UsageIncrement>) =>
      usageIncrement({ keyId, minute: start + 70, outputTokens: 2 ** keyId, ...fields });
    await store.usage.add([
      one(1, { teamId: 7, model: "a" }),
      one(2, { teamId: 7, userId: 3, model: "b", minute: start + 130 }),
      one(3, { model: "a" }),
      one(4, { userId: 3 }),
    ]);
    // Of each series its sum and its first bucket with one; then the sum of the others, and of all.
    const found = async (fields: Partial<ChartRange>): Promise<string> => {
      const { series, outputTokens, other } = await readChart(store, rangeOf(fields));
      const texts = series.map(({ id, values }) => `${id}: ${sum(values)} at ${values.findIndex(Boolean)}`);
      return `${texts.join(", ")} | ${sum(other.values)} | ${outputTokens}`;
    };
    for (const [fields, expected] of [
      [{ by: "team" }, "0: 24 at 1, 7: 6 at 1 | 0 | 30"],
      [{ by: "user" }, "3: 20 at 1, 0: 10 at 1 | 0 | 30"],
      [{ by: "model" }, ": 16 at 1, a: 10 at 1 | 4 | 30"],
      [{ by: "model", top: 1, teamId: 7 }, "b: 4 at 2 | 2 | 6"],
      [{ userId: 3 }, "4: 16 at 1, 2: 4 at 2 | 0 | 20"],
      [{ model: "" }, "4: 16 at 1 | 0 | 16"],
      [{ tag: "batch" }, "2: 4 at 2, 1: 2 at 1 | 0 | 6"],
      [{ tag: "" }, "4: 16 at 1, 3: 8 at 1 | 0 | 24"],
      [{ owner: "Kim", bucketMinutes: 5 }, "1: 2 at 14 | 0 | 2"],
      [{ owner: "Lee" }, " | 0 | 0"],
    ] as const)
      expect([fields, await found(fields)]).toEqual([fields, expected]);
    expect((await readChart(store, rangeOf({ by: "model" }))).listed.name).toEqual(["", "a", "b"]);
  });

  test("keys that are not listed count, and keys with a series are always listed", async () => {
    await using opened = await openTestEngine(clock);
    await createKeys(opened.store, names);
    await opened.store.usage.add(
      [1, 2, 3, 4].map((keyId) => usageIncrement({ keyId, minute: start, outputTokens: 10 - keyId })),
    );
    const chart = await readChart(opened.store, rangeOf({ listed: 1, top: 2 }));
    expect(chart.listed.id).toEqual([1, 2]);
    expect(chart).toMatchObject({ count: 4, outputTokens: 30, other: { count: 2, outputTokens: 13 } });
  });

  test("flushes run between the parts of a chart", async () => {
    await using opened = await openTestEngine(clock);
    const keyIds = Array.from({ length: 1100 }, (_, n) => n + 1);
    const minutes = [start, start + 1, start + 2];
    await opened.store.usage.add(minutes.flatMap((minute) => keyIds.map((keyId) => usageIncrement({ keyId, minute }))));
    const range = rangeOf({ bucketMinutes: 1, to: start + 60 });
    let parts = 0;
    for await (const _ of opened.store.usage.chart(range)) parts++;
    expect(parts).toBeGreaterThan(3);
    const chart = await readChart(opened.store, range);
    expect(chart).toMatchObject({ count: 1100, requestCount: 3300, other: { count: 1098 } });
  });
});
