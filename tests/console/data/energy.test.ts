import { expect, test } from "bun:test";
import { energyPerTokens, outputByBucket, outputSteps, powerSteps } from "../../../console/src/data/energy.ts";
import { minuteMs, seoulTimestamp } from "../../../console/src/data/seoul-time.ts";
import { usageHistoryFrom } from "../../../console/src/data/usage-history.ts";

const start = Date.parse("2026-11-21T10:00:00+09:00");
const span = { from: start, to: start + 10 * minuteMs };
const at = (minute: number): number => start + minute * minuteMs;

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

test("output tokens are summed over keys, and over the buckets of a step", () => {
  const point = (minute: number, keyId: number, output: number) => ({
    bucket_start: seoulTimestamp(at(minute)),
    key_id: keyId,
    key_name: `key ${keyId}`,
    request_count: 1,
    input_tokens: 1,
    output_tokens: output,
  });
  const byBucket = outputByBucket(
    usageHistoryFrom([point(0, 1, 10), point(0, 2, 20), point(2, 1, 5), point(10, 1, 7)]),
  );
  expect(byBucket).toEqual(
    new Map([
      [at(0), 30],
      [at(2), 5],
      [at(10), 7],
    ]),
  );
  expect([...outputSteps(byBucket, span, 5 * minuteMs)]).toEqual([35, 0]);
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
