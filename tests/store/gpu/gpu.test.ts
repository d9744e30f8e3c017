import { expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { bucketFloor, minuteOf, timestampOf } from "../../../src/time/seoul.ts";
import { onEachEngine } from "../each-engine.ts";
import { maintain, createKeys, type TestEngine, readReport } from "../test-store.ts";
import type { GpuReading } from "../../../src/domain/gpu.ts";

const now = new Date("2026-05-01T12:00:30.500+09:00").valueOf();
const dayMs = 86_400_000;

const reading = (gpuId: number, powerDrawW: number | null): GpuReading => ({
  gpuId,
  name: `GPU ${gpuId}`,
  powerDrawW,
  tempC: 60,
  memoryUsedMb: 1000,
  memoryTotalMb: 80_000,
  utilizationPct: 99,
});

const add = ({ store }: TestEngine, recordedAt: number, readings: GpuReading[]) =>
  store.gpu.add({ keyId: 1, recordedAt, readings });

interface PowerPoint {
  recorded_at: string;
  power_draw_w: number;
}

const powerPoints = ({ store }: TestEngine, bucketMinutes = 5, since = now - dayMs) =>
  readReport<PowerPoint>(store.gpu.powerHistory({ since, bucketMinutes }));

const powers = async (...args: Parameters<typeof powerPoints>) =>
  (await powerPoints(...args)).map(({ power_draw_w }) => power_draw_w);

const sampleCount = async ({ engine }: TestEngine) =>
  (await engine.rows<{ samples: number }>(sql`select count(*) as samples from gpu_samples`))[0]?.samples;

onEachEngine(({ openTestEngine }) => {
  test("pushes of the same millisecond are neither added up nor replaced", async () => {
    await using opened = await openTestEngine();
    await add(opened, now, [reading(0, 300)]);
    await add(opened, now, [reading(0, 200)]);
    await add(opened, now, [reading(1, 250)]);
    expect(await powers(opened)).toEqual([300]);
    expect(await sampleCount(opened)).toBe(3);
    expect((await opened.store.gpu.latest()).map(({ powerDrawW }) => powerDrawW)).toEqual([200, 250]);
  });

  test("a long power history comes in slices, for any bucket and window without losses or repetitions", async () => {
    await using opened = await openTestEngine();
    const first = minuteOf(now);
    // Every third minute has no push.
    const watts = (minute: number) => (minute % 3 === 0 ? undefined : 1000.5 + (minute % 97));
    const minutes = Array.from({ length: 9000 }, (_, n) => first + n).filter((minute) => watts(minute) !== undefined);
    await opened.engine.db
      .insert(opened.engine.tables.gpuPowerMinute)
      .values(minutes.map((minute) => ({ minute, powerDrawW: watts(minute) ?? 0 })));
    for (const bucketMinutes of [1, 7, 60, 999, 1001, 1440]) {
      for (const skipped of [-5000, 0, 1, 4321]) {
        const buckets = Map.groupBy(
          minutes.filter((minute) => minute >= first + skipped),
          (minute) => bucketFloor(minute, bucketMinutes),
        );
        const expected = [...buckets].map(([bucket, within]) => ({
          recorded_at: timestampOf(bucket * 60_000),
          power_draw_w: Math.max(...within.map((minute) => watts(minute) ?? 0)),
        }));
        const slices: Uint8Array[] = [];
        const since = (first + skipped) * 60_000 + 30_000;
        for await (const slice of opened.store.gpu.powerHistory({ since, bucketMinutes })) slices.push(slice);
        expect(JSON.parse(`[${Buffer.concat(slices).toString()}]`)).toEqual(expected);
        // No slice takes long to read and to format.
        for (const slice of slices) expect(slice.length).toBeLessThan(1100 * 80);
      }
    }
  });

  test("a push deletes samples older than seven days; their power is kept for thirty days", async () => {
    const time = { now };
    await using opened = await openTestEngine(() => time.now);
    await add(opened, now, [reading(0, 500), reading(7, 1)]);
    await add(opened, now + 7 * dayMs, [reading(0, 100)]);
    expect(await sampleCount(opened)).toBe(3);
    await add(opened, now + 7 * dayMs + 1, [reading(0, 100)]);
    expect(await sampleCount(opened)).toBe(2);
    expect((await opened.store.gpu.latest()).map(({ gpuId }) => gpuId)).toEqual([0]);
    expect(await powers(opened, 1440)).toEqual([501, 100]);
    await add(opened, now + 30 * dayMs, [reading(0, 100)]);
    expect(await powers(opened, 1440, now)).toEqual([501, 100, 100]);
    await add(opened, now + 40 * dayMs, [reading(0, 100)]);
    expect(await powers(opened, 1440, 0)).toEqual([501, 100, 100, 100]);
    time.now = now + 40 * dayMs;
    await maintain(opened.store);
    expect(await powers(opened, 1440, 0)).toEqual([100, 100, 100]);
    await maintain(opened.store);
    expect(await powers(opened, 1440, 0)).toEqual([100, 100]);
  });

  test("after a long pause, one push deletes ten seconds of samples and the next ones the rest", async () => {
    await using opened = await openTestEngine();
    for (let second = 0; second < 60; second++) await add(opened, now + second * 1000, [reading(0, 1)]);
    const later = now + 8 * dayMs;
    await add(opened, later, [reading(0, 1)]);
    expect(await sampleCount(opened)).toBe(51);
    for (let second = 1; second <= 5; second++) await add(opened, later + second * 1000, [reading(0, 1)]);
    expect(await sampleCount(opened)).toBe(6);
  });

  test("a push without any valid reading still deletes old samples and counts as a use of its key", async () => {
    await using opened = await openTestEngine();
    await createKeys(opened.store, ["pusher"]);
    await add(opened, now, [reading(0, 1)]);
    await add(opened, now + 8 * dayMs, []);
    expect(await sampleCount(opened)).toBe(0);
    expect(await opened.store.gpu.latest()).toEqual([]);
    expect(await opened.store.keys.list()).toMatchObject([{ lastUsedAt: now + 8 * dayMs, requestCount: 0 }]);
  });
});
