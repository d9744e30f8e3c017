import { expect, test } from "bun:test";
import {
  energyCost,
  energyPerTokens,
  outputByBucket,
  outputSteps,
  powerHistoryFrom,
  powerSteps,
} from "../../../console/src/gpus/energy.ts";
import { minuteMs, seoulDay, seoulTimestamp } from "../../../console/src/lib/seoul-time.ts";
import { usageBucketsFrom } from "../../../console/src/usage/usage-buckets.ts";
import { at, bucketsBody, bucketsRequest, start } from "../usage/bucket-bodies.ts";

const span = { from: start, to: start + 10 * minuteMs };

const powerOf = (...buckets: [minute: number, minutes: number, wattHours: number][]) =>
  new Map(buckets.map(([minute, minutes, wattHours]) => [at(minute), { minutes, wattHours }]));

test("points without a power reading are left out", () => {
  const point = (minute: number, measured_minutes: number, energy_wh: number | null) => ({
    bucket_start: seoulTimestamp(at(minute)),
    measured_minutes,
    energy_wh,
  });
  expect(powerHistoryFrom([point(0, 2, 20), point(2, 0, null), point(4, 1, 0)])).toEqual(
    powerOf([0, 2, 20], [4, 1, 0]),
  );
});

test("energy adds up, and tokens count in buckets with power", () => {
  const output = new Map([
    [at(0), 1000],
    [at(2), 2000],
    [at(4), 9000],
  ]);
  expect(energyPerTokens(powerOf([0, 2, 20], [2, 1, 40]), output, span)).toEqual({
    wattHours: 60,
    outputTokens: 3000,
    wattHoursPerThousand: 20,
  });
});

test("idle GPUs use energy, and without tokens there is no rate", () => {
  expect(energyPerTokens(powerOf([0, 5, 25]), new Map(), span)).toEqual({
    wattHours: 25,
    outputTokens: 0,
    wattHoursPerThousand: undefined,
  });
});

test("buckets outside the span do not count", () => {
  const outside = energyPerTokens(powerOf([-1, 1, 10], [10, 1, 10]), new Map([[at(-1), 5]]), span);
  expect(outside).toEqual({ wattHours: 0, outputTokens: 0, wattHoursPerThousand: undefined });
});

test("a step has the mean over its measured time, and a step without a reading is NaN", () => {
  // 600 W for two minutes and 300 W for one; then a reading of 0 W.
  const power = powerOf([0, 2, 20], [2, 1, 5], [8, 1, 0], [10, 1, 99]);
  expect([...powerSteps(power, span, 4 * minuteMs)]).toEqual([500, Number.NaN, 0]);
});

test("output tokens are summed over keys and other keys, and over the buckets of a step", () => {
  const body = bucketsBody(
    [
      [1, [10, 0, 5, 0, 0]],
      [2, [20, 0, 0, 0, 0]],
    ],
    { otherKeys: 1, other: [0, 0, 0, 0, 7] },
  );
  const byBucket = outputByBucket(usageBucketsFrom(body, bucketsRequest, at(4)));
  expect(byBucket).toEqual(
    new Map([
      [at(0), 30],
      [at(2), 5],
      [at(4), 7],
    ]),
  );
  expect([...outputSteps(byBucket, span, 4 * minuteMs)]).toEqual([35, 7, 0]);
  expect(outputByBucket(undefined).size).toBe(0);
});

test("energy costs what its day in Seoul had as a price, and is never guessed", () => {
  const day = 24 * 60;
  const power = powerOf([0, 1, 1000], [day, 1, 500]);
  const days = { from: start, to: at(2 * day) };
  const price = (valid_from: string, per_kwh: number) => ({ valid_from, per_kwh });
  const [first, second] = [seoulDay(start), seoulDay(at(day))];
  expect(energyCost(power, days, [])).toEqual({ cost: null, cost_is_partial: true });
  expect(energyCost(new Map(), days, [])).toEqual({ cost: null, cost_is_partial: false });
  expect(energyCost(power, days, [price(second, 4)])).toEqual({ cost: 2, cost_is_partial: true });
  expect(energyCost(power, days, [price(first, 3), price(second, 4)])).toEqual({ cost: 5, cost_is_partial: false });
  expect(energyCost(power, span, [price(first, 3)]).cost).toBe(3);
});
