import { expect, test } from "bun:test";
import { add, lastHours, valuesInSteps } from "../../../console/src/lib/time-steps.ts";
import { trafficRange } from "../../../src/admin/requests/latency.ts";

const at = (text: string): number => Date.parse(`2026-11-21T${text}+09:00`);

test("the last hours end with the current bucket and are aligned to Seoul's clock", () => {
  expect(lastHours(24, 15, at("13:07:00"))).toEqual({ from: at("13:00:00") - 86_400_000, to: at("13:15:00") });
  expect(lastHours(24, 1440, at("13:07:00")).to).toBe(at("00:00:00") + 86_400_000);
});

test("the last hours begin with the first bucket of the API, so that a chart draws all that its sums have", () => {
  for (const clock of ["13:00:00", "13:07:59", "13:14:59", "00:00:30"]) {
    for (const [hours, bucketMinutes] of [
      [24, 15],
      [1, 5],
      [24, 60],
    ] as const) {
      const { from } = trafficRange(at(clock), hours, bucketMinutes);
      expect(lastHours(hours, bucketMinutes, at(clock)).from).toBe(from * 60_000);
    }
  }
});

test("a bucket that starts now is part of the span", () => {
  expect(lastHours(1, 15, at("13:15:00")).to).toBe(at("13:30:00"));
});

test("buckets of one step are combined, and a step without one is a gap", () => {
  const span = { from: at("00:00:00"), to: at("00:06:00") };
  const buckets = [0, 1, 4].map((minute) => ({ bucket_start: `2026-11-21T00:0${minute}:00.000+09:00`, value: 5 }));
  const values = valuesInSteps(buckets, { span, stepMs: 120_000 }, ({ value }) => value, add);
  expect([...values]).toEqual([10, Number.NaN, 5]);
});
