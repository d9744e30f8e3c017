import { expect, test } from "bun:test";
import { energyPerTokens, outputByBucket, outputSteps, powerSteps } from "../../../console/src/data/energy.ts";
import { minuteMs } from "../../../console/src/data/seoul-time.ts";
import { usageChartFrom } from "../../../console/src/data/usage-chart.ts";
import { at, chartBody, chartRequest, start } from "./chart-bodies.ts";

const span = { from: start, to: start + 10 * minuteMs };

test("each minute counts at its maximum, and tokens count in buckets with power", () => {
  const watts = new Map([
    [at(0), 600],
    [at(1), 600],
    [at(2), 1200],
    [at(3), 1200],
  ]);
  const byBucket = new Map([
    [at(0), 1000],
    [at(2), 2000],
  ]);
  expect(energyPerTokens({ watts, bucketMinutes: 1 }, { byBucket, bucketMinutes: 2 }, span)).toEqual({
    wattHours: 60,
    outputTokens: 3000,
    wattHoursPerThousand: 20,
  });
});

test("tokens in buckets without power do not lower the rate", () => {
  const power = { watts: new Map([[at(0), 600]]), bucketMinutes: 1 };
  const byBucket = new Map([
    [at(0), 1000],
    [at(4), 9000],
  ]);
  expect(energyPerTokens(power, { byBucket, bucketMinutes: 2 }, span).wattHoursPerThousand).toBe(10);
});

test("idle GPUs use energy, and without tokens there is no rate", () => {
  const power = { watts: new Map([[at(0), 300]]), bucketMinutes: 5 };
  expect(energyPerTokens(power, { byBucket: new Map(), bucketMinutes: 5 }, span)).toEqual({
    wattHours: 25,
    outputTokens: 0,
    wattHoursPerThousand: undefined,
  });
});

test("points outside the span do not count", () => {
  const power = {
    watts: new Map([
      [at(-1), 600],
      [at(10), 600],
    ]),
    bucketMinutes: 1,
  };
  expect(energyPerTokens(power, { byBucket: new Map([[at(-2), 5]]), bucketMinutes: 2 }, span).wattHours).toBe(0);
});

test("a wider step has its highest minute, and a step without a reading is NaN", () => {
  const power = new Map([
    [at(0), 300],
    [at(1), 500],
    [at(4), 0],
  ]);
  expect([...powerSteps(power, span, 2 * minuteMs)]).toEqual([500, Number.NaN, 0, Number.NaN, Number.NaN]);
});

test("output tokens are summed over keys and other keys, and over the buckets of a step", () => {
  const body = chartBody(
    [
      [1, [10, 0, 5, 0, 0]],
      [2, [20, 0, 0, 0, 0]],
    ],
    { otherKeys: 1, other: [0, 0, 0, 0, 7] },
  );
  const byBucket = outputByBucket(usageChartFrom(body, chartRequest, at(4)));
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

test("power in only the second minute of a usage bucket counts that bucket's tokens, once", () => {
  const byBucket = new Map([[at(0), 1000]]);
  const power = (minutes: number[]) => ({
    watts: new Map(minutes.map((minute) => [at(minute), 600])),
    bucketMinutes: 1,
  });
  const energyAt = (minutes: number[]) => energyPerTokens(power(minutes), { byBucket, bucketMinutes: 2 }, span);
  expect(energyAt([1])).toEqual({ wattHours: 10, outputTokens: 1000, wattHoursPerThousand: 10 });
  expect(energyAt([0, 1])).toEqual({ wattHours: 20, outputTokens: 1000, wattHoursPerThousand: 20 });
});
