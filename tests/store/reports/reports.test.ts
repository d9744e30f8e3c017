import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { bucketFloor, dayOf, minuteOf, timestampOf } from "../../../src/time/seoul.ts";
import { onEachEngine } from "../each-engine.ts";
import { createKeys, type DailyRow, type HistoryPoint, readReport, usageIncrement } from "../test-store.ts";
import type { UsageIncrement } from "../../../src/domain/usage.ts";

const start = minuteOf(new Date("2026-05-01T00:00:00+09:00").valueOf());
const clock = () => (start + 5 * 1440) * 60_000;

function withoutBucket(point: HistoryPoint & { bucket?: number }): HistoryPoint {
  delete point.bucket;
  return point;
}

/** The simple, slow way to compute them. */
function expectedPoints(
  increments: readonly UsageIncrement[],
  sinceMinute: number,
  bucketMinutes: number,
): HistoryPoint[] {
  const points = new Map<string, HistoryPoint & { bucket: number }>();
  for (const one of increments.filter(({ minute }) => minute >= sinceMinute)) {
    const bucket = bucketFloor(one.minute, bucketMinutes);
    const point = points.get(`${bucket} ${one.keyId}`) ?? {
      bucket,
      bucket_start: timestampOf(bucket * 60_000),
      key_id: one.keyId,
      key_name: `key ${one.keyId}`,
      request_count: 0,
      input_tokens: 0,
      output_tokens: 0,
    };
    point.request_count += one.requestCount;
    point.input_tokens += one.inputTokens;
    point.output_tokens += one.outputTokens;
    points.set(`${bucket} ${one.keyId}`, point);
  }
  return [...points.values()].toSorted((a, b) => a.bucket - b.bucket || a.key_id - b.key_id).map(withoutBucket);
}

const totalOf = (sums: readonly Pick<UsageIncrement, "requestCount" | "inputTokens" | "outputTokens">[]): number[] =>
  sums.reduce<number[]>(
    ([requests = 0, input = 0, output = 0], one) => [
      requests + one.requestCount,
      input + one.inputTokens,
      output + one.outputTokens,
    ],
    [0, 0, 0],
  );

const totalOfRows = (rows: readonly (DailyRow | HistoryPoint)[]) =>
  totalOf(
    rows.map((row) => ({
      requestCount: row.request_count,
      inputTokens: row.input_tokens,
      outputTokens: row.output_tokens,
    })),
  );

const anyIncrement = fc.record({
  keyId: fc.integer({ min: 1, max: 4 }),
  minute: fc.integer({ min: start, max: start + 3 * 1440 }),
  requestCount: fc.integer({ min: 1, max: 50 }),
  inputTokens: fc.integer({ min: 0, max: 1_000_000 }),
  outputTokens: fc.integer({ min: 0, max: 100_000 }),
});

onEachEngine(({ openTestEngine }) => {
  test("for any usage, window and bucket, history has exactly the points of the minutes in the window", async () => {
    await using opened = await openTestEngine(clock);
    await fc.assert(
      fc.asyncProperty(
        fc.array(anyIncrement, { maxLength: 80 }),
        fc.integer({ min: start - 100, max: start + 3 * 1440 }),
        fc.oneof(fc.integer({ min: 1, max: 1440 }), fc.constantFrom(1, 5, 60, 90, 120, 720, 1439, 1440)),
        async (partial, since, bucketMinutes) => {
          await opened.clear();
          await createKeys(opened.store, ["key 1", "key 2", "key 3", "key 4"]);
          const increments = partial.map(usageIncrement);
          await opened.store.usage.add(increments);
          const points = await readReport<HistoryPoint>(
            // Half a minute later: the minute that contains `since` still counts.
            opened.store.usage.history({ since: since * 60_000 + 30_000, bucketMinutes }),
          );
          expect(points).toEqual(expectedPoints(increments, since, bucketMinutes));
        },
      ),
      { numRuns: 60 },
    );
  });

  describe("a long report", () => {
    const keyCount = 37;
    const minuteCount = 200;
    const manyIncrements = Array.from({ length: keyCount * minuteCount }, (_, n) =>
      usageIncrement({ keyId: 1 + (n % keyCount), minute: start + Math.floor(n / keyCount) }),
    );
    const names = Array.from({ length: keyCount }, (_, n) => `key ${n + 1}`);

    test.each([1, 7, 60, 1440])(
      "with buckets of %i minutes comes in slices without losses or repetitions",
      async (minutes) => {
        await using opened = await openTestEngine(clock);
        await createKeys(opened.store, names);
        await opened.store.usage.add(manyIncrements);
        const slices: Uint8Array[] = [];
        for await (const slice of opened.store.usage.history({ since: start * 60_000, bucketMinutes: minutes })) {
          slices.push(slice);
        }
        const points: HistoryPoint[] = JSON.parse(`[${Buffer.concat(slices).toString()}]`);
        expect(points).toEqual(expectedPoints(manyIncrements, start, minutes));
        const maxPerSlice = Math.max(
          ...slices.map((slice) => Buffer.from(slice).toString().split("bucket_start").length),
        );
        expect(maxPerSlice).toBeLessThan(1100);
      },
    );

    test("of days comes latest first, ordered by key, in slices without losses or repetitions", async () => {
      await using opened = await openTestEngine(clock);
      await createKeys(opened.store, names);
      const increments = Array.from({ length: keyCount * 90 }, (_, n) =>
        usageIncrement({ keyId: 1 + (n % keyCount), minute: start - 1440 * Math.floor(n / keyCount) }),
      );
      await opened.store.usage.add(increments);
      const rows = await readReport<DailyRow>(opened.store.usage.daily(dayOf((start - 1440 * 79) * 60_000)));
      const sorted = rows.toSorted((a, b) => b.date.localeCompare(a.date) || a.key_id - b.key_id);
      expect(rows).toEqual(sorted);
      expect(new Set(rows.map((row) => `${row.date} ${row.key_id}`)).size).toBe(rows.length);
      expect(rows).toHaveLength(keyCount * 80);
      expect(rows.at(-1)?.date).toBe(dayOf((start - 1440 * 79) * 60_000));
    });

    test("has all keys of one minute, hour and day, even if they are more than a slice holds", async () => {
      await using opened = await openTestEngine(clock);
      const { usage } = opened.store;
      const many = 2500;
      const keyIds = Array.from({ length: many }, (_, n) => n + 1);
      const minutes = [start, start + 1, start + 90, start + 1440];
      await usage.add(minutes.flatMap((minute) => keyIds.map((keyId) => usageIncrement({ keyId, minute }))));
      for (const [bucketMinutes, buckets] of [
        [1, 4],
        [60, 3],
        [1440, 2],
      ] as const) {
        const points = await readReport<HistoryPoint>(usage.history({ since: start * 60_000, bucketMinutes }));
        expect(points).toHaveLength(buckets * many);
        expect(totalOfRows(points)).toEqual([4 * many, 40 * many, 8 * many]);
        expect(points.slice(0, many).map((point) => point.key_id)).toEqual(keyIds);
      }
      const rows = await readReport<DailyRow>(usage.daily(dayOf(start * 60_000)));
      expect(rows).toHaveLength(2 * many);
      expect(rows.slice(0, many).map((row) => row.key_id)).toEqual(keyIds);
      expect(totalOfRows(rows)).toEqual([4 * many, 40 * many, 8 * many]);
    });
  });
});
