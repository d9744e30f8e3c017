import { describe, expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { bucketFloor, minuteOf, timestampOf } from "../../../src/time/seoul.ts";
import { type GpuPast, writePastGpus } from "../../../src/demo/past-gpus.ts";
import { onEachEngine } from "../each-engine.ts";
import { maintain, readReport, type TestEngine } from "../test-store.ts";
import type { GpuReading } from "../../../src/domain/gpu.ts";

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;
const now = Date.parse("2026-05-01T12:00:00+09:00");

const reading = (gpuId: number, fields: Partial<GpuReading> = {}): GpuReading => ({
  gpuId,
  name: `GPU ${gpuId}`,
  powerDrawW: 100,
  tempC: 60,
  memoryUsedMb: 1000,
  memoryTotalMb: 80_000,
  utilizationPct: 50,
  ...fields,
});

interface Point {
  bucket_start: string;
  measured_minutes: number;
  power_draw_w: number | null;
  energy_wh: number | null;
}

/** A store whose clock the test sets. */
async function openAt(open: (clock: () => number) => Promise<TestEngine>) {
  const time = { now };
  const opened = await open(() => time.now);
  const { store, engine } = opened;
  const since = (days: number) => time.now - days * dayMs;
  return {
    time,
    engine,
    add: (at: number, readings: GpuReading[]) => {
      time.now = at;
      return store.gpu.add({ keyId: 1, recordedAt: at, readings });
    },
    addPast: (past: GpuPast) => writePastGpus(engine, past),
    maintain: () => maintain(store),
    history: (bucketMinutes: number, gpuId?: number, days = 1) =>
      readReport<Point>(store.gpu.history({ since: since(days), bucketMinutes }, gpuId)),
    count: async (table: string) =>
      (await engine.rows<{ n: number }>(sql`select count(*) as n from ${sql.raw(table)}`))[0]?.n,
    [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
  };
}

onEachEngine(({ openTestEngine }) => {
  const open = () => openAt(openTestEngine);

  test("hours and minutes of the past are read like those of pushes, which continue them", async () => {
    await using opened = await open();
    const ofHour = [100, 300, 200].map((value) =>
      reading(1, { powerDrawW: value, tempC: value, memoryUsedMb: value, utilizationPct: value }),
    );
    const hour = minuteOf(now) / 60 - 3;
    await opened.addPast({
      hours: [
        { hour, readings: ofHour },
        { hour: hour + 1, readings: ofHour },
      ],
      minutes: [
        { minute: hour * 60, powerW: 600, readings: [] },
        { minute: minuteOf(now) - 2, powerW: 480, readings: [reading(1, { powerDrawW: 480 })] },
      ],
    });
    await opened.add(now, [reading(1, { powerDrawW: 120 })]);
    expect((await opened.history(60)).map((one) => [one.measured_minutes, one.energy_wh])).toEqual([
      [1, 10],
      [1, 8],
      [1, 2],
    ]);
    const past = { measured_minutes: 3, power_draw_w: 200, power_draw_w_max: 300, power_draw_w_last: 200 };
    expect(await opened.history(60, 1)).toMatchObject([
      { ...past, temp_c: 200, utilization_pct_max: 300, memory_used_mb_last: 200 },
      past,
      { measured_minutes: 1, power_draw_w: 480 },
      { measured_minutes: 1, power_draw_w: 120 },
    ]);
    // What was added as whole hours is not summed up again.
    expect(await opened.count("gpu_hour")).toBe(2);
  });

  test("energy is the mean power times the measured time: gaps are left out", async () => {
    await using opened = await open();
    // Many samples in one minute weigh no more than few in another.
    for (let second = 0; second < 50; second++)
      await opened.add(now + second * 1000, [reading(0, { powerDrawW: 600 })]);
    await opened.add(now + 10 * minuteMs, [reading(0, { powerDrawW: 300 }), reading(1, { powerDrawW: 100 })]);
    await opened.add(now + 20 * minuteMs, [reading(1, { powerDrawW: null })]);
    const [all] = await opened.history(60);
    expect(all).toEqual({
      bucket_start: "2026-05-01T12:00:00.000+09:00",
      measured_minutes: 2,
      power_draw_w: 500,
      energy_wh: 16.667,
    });
    expect((await opened.history(60, 0))[0]).toMatchObject({ measured_minutes: 2, power_draw_w: 450, energy_wh: 15 });
    expect((await opened.history(60, 1))[0]).toMatchObject({ measured_minutes: 1, power_draw_w: 100 });
  });

  test("readings from the future, written before the clock was set back, are left out of a GPU's history", async () => {
    await using opened = await open();
    await opened.add(now + 400 * dayMs, [reading(0, { powerDrawW: 999 })]);
    await opened.add(now + 400 * dayMs + 3 * hourMs, [reading(0)]);
    await opened.add(now, [reading(0, { powerDrawW: 100 })]);
    await opened.add(now + 2 * hourMs, [reading(0, { powerDrawW: 200 })]);
    expect((await opened.history(60, 0)).map((point) => point.power_draw_w)).toEqual([100, 200]);
  });

  describe("over hours that are summed up", () => {
    test("an hour is summed up once, a minute after its end, and the numbers stay the same", async () => {
      await using opened = await open();
      for (let minute = 0; minute < 60; minute += 7) {
        const at = now + minute * minuteMs;
        await opened.add(at, [reading(0, { powerDrawW: 100 + minute, tempC: minute }), reading(1)]);
      }
      await opened.add(now + hourMs + 59_999, [reading(0)]);
      expect(await opened.count("gpu_hour")).toBe(0);
      const before = [await opened.history(60, 0), await opened.history(120, 0), await opened.history(1440, 1)];
      await opened.add(now + hourMs + minuteMs, [reading(5)]);
      expect(await opened.count("gpu_hour")).toBe(2);
      await opened.add(now + hourMs + 2 * minuteMs, [reading(5)]);
      expect(await opened.count("gpu_hour")).toBe(2);
      expect([await opened.history(60, 0), await opened.history(120, 0), await opened.history(1440, 1)]).toEqual(
        before,
      );
    });

    test("after a pause, each push sums up one hour", async () => {
      await using opened = await open();
      for (let hour = 0; hour < 3; hour++) {
        await opened.add(now + hour * hourMs, [reading(hour)]);
        if (hour > 0) expect(await opened.count("gpu_hour")).toBe(hour - 1);
      }
      for (const expected of [2, 3, 3]) {
        await opened.add(now + 9 * hourMs, [reading(9)]);
        expect(await opened.count("gpu_hour")).toBe(expected);
      }
    });

    test("every bucket and window has the sums of its minutes, without losses or repetitions", async () => {
      await using opened = await open();
      const first = minuteOf(now) - 3 * 1440;
      const watts = (minute: number) => (minute % 3 !== 0 || minute % 1000 < 130 ? undefined : 100 + (minute % 97));
      const minutes = Array.from({ length: 3 * 1440 }, (_, n) => first + n).filter((one) => watts(one) !== undefined);
      for (const minute of minutes)
        await opened.add(minute * minuteMs, [reading(0, { powerDrawW: watts(minute) ?? 0 })]);
      opened.time.now = now;
      expect(await opened.count("gpu_hour")).toBeGreaterThan(60);
      for (const bucketMinutes of [1, 7, 60, 90, 1001, 1440]) {
        for (const days of [1, 2, 30]) {
          const buckets = Map.groupBy(
            minutes.filter((minute) => minute >= minuteOf(now - days * dayMs)),
            (minute) => bucketFloor(minute, bucketMinutes),
          );
          const expected = [...buckets].map(([bucket, within]) => ({
            bucket_start: timestampOf(bucket * minuteMs),
            measured_minutes: within.length,
            power_draw_w: expect.closeTo(
              within.reduce((sum, minute) => sum + (watts(minute) ?? 0), 0) / within.length,
              2,
            ) as number,
          }));
          const ofOne = await opened.history(bucketMinutes, 0, days);
          expect(ofOne).toMatchObject(expected);
          expect(ofOne).toHaveLength(expected.length);
          const ofAll = await opened.history(bucketMinutes, undefined, days);
          expect(ofAll).toMatchObject(expected);
          expect(ofAll).toHaveLength(expected.length);
        }
      }
    });
  });
});
