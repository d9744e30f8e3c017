import { expect, test } from "bun:test";
import { attentionOf, isFull, isStale, sumGpus } from "../../../console/src/gpus/gpu-state.ts";
import type { Gpu } from "../../../console/src/gpus/queries.ts";
import { seoulTimestamp } from "../../../console/src/lib/seoul-time.ts";
import { sampleGpu } from "./sample-gpu.ts";

const now = Date.parse("2026-11-21T10:00:00+09:00");
const gpu = (ageMs: number, fields: Partial<Gpu> = {}): Gpu =>
  sampleGpu({ recorded_at: seoulTimestamp(now - ageMs), ...fields });

test("a GPU is stale two minutes after its last sample", () => {
  expect(isStale(gpu(119_999), now)).toBe(false);
  expect(isStale(gpu(120_000), now)).toBe(true);
});

test("stale GPUs are excluded from all sums", () => {
  const sums = sumGpus(
    [gpu(0), gpu(500_000, { power_draw_w: 900, temp_c: 99 }), gpu(0, { power_draw_w: 50, utilization_pct: 60 })],
    now,
  );
  expect(sums).toEqual({
    reporting: 2,
    powerW: 150,
    utilizationPct: 50,
    memoryUsedMb: 20,
    memoryTotalMb: 40,
    hottestC: 50,
  });
});

test("a value that a GPU does not report is not a zero in the mean", () => {
  const withoutValues = gpu(0, {
    power_draw_w: null,
    utilization_pct: null,
    temp_c: null,
    memory_used_mb: null,
    memory_total_mb: null,
  });
  expect(sumGpus([withoutValues, gpu(0)], now)).toMatchObject({ powerW: 100, utilizationPct: 40, memoryUsedMb: 10 });
});

test.each([
  [
    "reports a value",
    [gpu(0, { power_draw_w: null, utilization_pct: null, temp_c: null, memory_used_mb: null, memory_total_mb: null })],
  ],
  ["is live", [gpu(500_000)]],
])("if no GPU %s, the sums are undefined", (_, gpus) => {
  const { reporting, ...measured } = sumGpus(gpus, now);
  expect(reporting).toBeLessThanOrEqual(1);
  expect(Object.values(measured)).toEqual([undefined, undefined, undefined, undefined, undefined]);
});

test.each([
  [{ temp_c: 85 }, 85, false],
  [{ temp_c: 84 }, 0, false],
  [{ temp_c: null }, 0, false],
  [{ memory_used_mb: 95, memory_total_mb: 100 }, 0, true],
  [{ memory_used_mb: 94, memory_total_mb: 100 }, 0, false],
  [{ memory_used_mb: 95, memory_total_mb: null }, 0, false],
  [{ memory_used_mb: 0, memory_total_mb: 0 }, 0, false],
  [{ temp_c: 99, memory_used_mb: 20 }, 99, true],
])("a GPU with %j needs attention by %p, and is full: %p; of a stale one nothing is known", (fields, wanted, full) => {
  expect([attentionOf(gpu(0, fields), now), isFull(gpu(0, fields))]).toEqual([wanted, full]);
  expect(attentionOf(gpu(500_000, fields), now)).toBe(Infinity);
});
