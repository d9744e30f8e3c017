import { expect, test } from "bun:test";
import { gpuHistoryFrom, gpuSteps } from "../../../console/src/gpus/gpu-history.ts";
import { minuteMs, seoulTimestamp } from "../../../console/src/lib/seoul-time.ts";

const start = Date.parse("2026-11-21T10:00:00+09:00");
const span = { from: start, to: start + 6 * minuteMs };
const point = (minute: number, mean: number | null, max: number | null) => ({
  bucket_start: seoulTimestamp(start + minute * minuteMs),
  temp_c: mean,
  temp_c_max: max,
});

test("a step has the mean of its buckets and their highest value; without a reading both are NaN", () => {
  const history = gpuHistoryFrom([
    point(-1, 99, 99),
    point(0, 50, 80),
    point(1, 60, 70),
    point(2, null, null),
    point(5, 0, 0),
    point(6, 99, 99),
  ]);
  const steps = gpuSteps(history, "temp_c", span, 2 * minuteMs);
  expect([...steps.mean]).toEqual([55, Number.NaN, 0]);
  expect([...steps.highest]).toEqual([80, Number.NaN, 0]);
  expect([...gpuSteps(history, "power_draw_w", span, 2 * minuteMs).mean]).toEqual([Number.NaN, Number.NaN, Number.NaN]);
});
