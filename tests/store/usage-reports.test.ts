import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { bucketFloor, dayOf, minuteOf, timestampOf } from "../../src/time/seoul.ts";
import type { UsageIncrement } from "../../src/store/store.ts";
import { stretches } from "../../src/store/usage-reports.ts";
import { createKeys, type DailyRow, type HistoryPoint, readReport, usageCount, onEachEngine } from "./test-store.ts";

const start = minuteOf(new Date("2026-05-01T00:00:00+09:00").valueOf());
const clock = () => (start + 5 * 1440) * 60_000;

function withoutBucket(point: HistoryPoint & { bucket?: number }): HistoryPoint {
  delete point.bucket;
  return point;
}

/** The slow, obvious way. */
function expectedPoints(counts: readonly UsageIncrement[], sinceMinute: number, bucketMinutes: number): HistoryPoint[] {
  const points = new Map<string, HistoryPoint & { bucket: number }>();
  for (const count of counts.filter(({ minute }) => minute >= sinceMinute)) {
    const bucket = bucketFloor(count.minute, bucketMinutes);
    const point = points.get(`${bucket} ${count.keyId}`) ?? {
      bucket,
      bucket_start: timestampOf(bucket * 60_000),
      key_id: count.keyId,
      key_name: `key ${count.keyId}`,
      request_count: 0,
      input_tokens: 0,
      output_tokens: 0,
    };
    point.request_count += count.requestCount;
    point.input_tokens += count.inputTokens;
    point.output_tokens += count.outputTokens;
    points.set(`${bucket} ${count.keyId}`, point);
  }
  return [...points.values()].toSorted((a, b) => a.bucket - b.bucket || a.key_id - b.key_id).map(withoutBucket);
}

const countOf = (counts: readonly Pick<UsageIncrement, "requestCount" | "inputTokens" | "outputTokens">[]): number[] =>
  counts.reduce<number[]>(
    ([requests = 0, input = 0, output = 0], one) => [
      requests + one.requestCount,
      input + one.inputTokens,
      output + one.outputTokens,
    ],
    [0, 0, 0],
  );

const rowCountOf = (rows: readonly (DailyRow | HistoryPoint)[]) =>
  countOf(
    rows.map((row) => ({
      requestCount: row.request_count,
      inputTokens: row.input_tokens,
      outputTokens: row.output_tokens,
    })),
  );

const anyCount = fc.record({
  keyId: fc.integer({ min: 1, max: 4 }),
  minute: fc.integer({ min: start, max: start + 3 * 1440 }),
  requestCount: fc.integer({ min: 1, max: 50 }),
  inputTokens: fc.integer({ min: 0, max: 1_000_000 }),
  outputTokens: fc.integer({ min: 0, max: 100_000 }),
});

onEachEngine(({ openTestEngine }) => {
  test("for any traffic, the sums over minutes, over days and of the totals are the same", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(anyCount, { minLength: 1, maxLength: 60 }), async (partial) => {
        await using opened = await openTestEngine(clock);
        const { usage } = opened.store;
        await createKeys(opened.store, ["key 1", "key 2", "key 3", "key 4"]);
        const counts = partial.map(usageCount);
        for (let n = 0; n < counts.length; n += 7) await usage.add(counts.slice(n, n + 7));

        const total = countOf(counts);
        const daily = await readReport<DailyRow>(usage.daily(dayOf(start * 60_000)));
        expect(rowCountOf(daily)).toEqual(total);
        expect(countOf([await usage.sumOfKeys()])).toEqual(total);
        expect(countOf([await usage.sumOfMinutes(start, start + 4 * 1440)])).toEqual(total);
        expect(countOf(await opened.store.keys.list())).toEqual(total);
      }),
      { numRuns: 25 },
    );
  });

  test("for any traffic, window and bucket, history holds exactly the points of the minutes since", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(anyCount, { maxLength: 80 }),
        fc.integer({ min: start - 100, max: start + 3 * 1440 }),
        fc.oneof(fc.integer({ min: 1, max: 1440 }), fc.constantFrom(1, 5, 60, 90, 120, 720, 1439, 1440)),
        async (partial, since, bucketMinutes) => {
          await using opened = await openTestEngine(clock);
          await createKeys(opened.store, ["key 1", "key 2", "key 3", "key 4"]);
          const counts = partial.map(usageCount);
          await opened.store.usage.add(counts);
          const points = await readReport<HistoryPoint>(
            // Half a minute in: that minute still counts.
            opened.store.usage.history({ since: since * 60_000 + 30_000, bucketMinutes }),
          );
          expect(points).toEqual(expectedPoints(counts, since, bucketMinutes));
        },
      ),
      { numRuns: 60 },
    );
  });

  describe("a long report", () => {
    const keyCount = 37;
    const minuteCount = 200;
    const manyCounts = Array.from({ length: keyCount * minuteCount }, (_, n) =>
      usageCount({ keyId: 1 + (n % keyCount), minute: start + Math.floor(n / keyCount) }),
    );
    const names = Array.from({ length: keyCount }, (_, n) => `key ${n + 1}`);

    test.each([1, 7, 60, 1440])(
      "of buckets of %i minutes comes in slices that lose and repeat nothing",
      async (minutes) => {
        await using opened = await openTestEngine(clock);
        await createKeys(opened.store, names);
        await opened.store.usage.add(manyCounts);
        const slices: Uint8Array[] = [];
        for await (const slice of opened.store.usage.history({ since: start * 60_000, bucketMinutes: minutes })) {
          slices.push(slice);
        }
        const points: HistoryPoint[] = JSON.parse(`[${Buffer.concat(slices).toString()}]`);
        expect(points).toEqual(expectedPoints(manyCounts, start, minutes));
        const mostInSlice = Math.max(
          ...slices.map((slice) => Buffer.from(slice).toString().split("bucket_start").length),
        );
        expect(mostInSlice).toBeLessThan(1100);
      },
    );

    test("of days comes newest first, key by key, in slices that lose and repeat nothing", async () => {
      await using opened = await openTestEngine(clock);
      await createKeys(opened.store, names);
      const counts = Array.from({ length: keyCount * 90 }, (_, n) =>
        usageCount({ keyId: 1 + (n % keyCount), minute: start - 1440 * Math.floor(n / keyCount) }),
      );
      await opened.store.usage.add(counts);
      const rows = await readReport<DailyRow>(opened.store.usage.daily(dayOf((start - 1440 * 79) * 60_000)));
      const sorted = rows.toSorted((a, b) => b.date.localeCompare(a.date) || a.key_id - b.key_id);
      expect(rows).toEqual(sorted);
      expect(new Set(rows.map((row) => `${row.date} ${row.key_id}`)).size).toBe(rows.length);
      expect(rows).toHaveLength(keyCount * 80);
      expect(rows.at(-1)?.date).toBe(dayOf((start - 1440 * 79) * 60_000));
    });

    test("is a list without elements where nothing was counted", async () => {
      await using opened = await openTestEngine(clock);
      expect(await readReport(opened.store.usage.daily("2026-05-01"))).toEqual([]);
      expect(await readReport(opened.store.usage.history({ since: 0, bucketMinutes: 5 }))).toEqual([]);
    });
  });
});

describe("stretches", () => {
  const hour = Math.ceil(start / 60);

  test("read minutes alone where buckets are shorter than an hour", () => {
    expect(stretches(start + 7, start + 500, 59)).toMatchObject([{ unit: 1, from: start + 7, to: start + 500 }]);
  });

  test("read hours where buckets hold whole ones, but for the window's first", () => {
    expect(stretches(start + 7, start + 300, 60)).toEqual([
      { unit: 1, from: start + 7, to: start + 60 },
      { unit: 60, from: hour + 1, to: hour + 5 },
    ]);
  });

  test("read the hour that two buckets share by its minutes", () => {
    const shared = stretches(start, start + 3 * 1440, 90).filter(({ unit }) => unit === 1);
    expect(shared.length).toBeGreaterThan(10);
    for (const { from, to } of shared) expect(bucketFloor(from, 90)).not.toBe(bucketFloor(to - 1, 90));
  });
});
