import { expect, test } from "bun:test";
import { isStale, sumGpus } from "../../../console/src/data/gpu-state.ts";
import type { Gpu } from "../../../console/src/data/queries.ts";
import { seoulTimestamp } from "../../../console/src/data/seoul-time.ts";

const now = Date.parse("2026-11-21T10:00:00+09:00");
const gpu = (silentMs: number, fields: Partial<Gpu> = {}): Gpu => ({
  id: 1,
  gpu_id: 0,
  name: "GPU",
  recorded_at: seoulTimestamp(now - silentMs),
  power_draw_w: 100,
  temp_c: 50,
  memory_used_mb: 10,
  memory_total_mb: 20,
  utilization_pct: 40,
  ...fields,
});

test("a GPU is stale once it has been silent for two minutes", () => {
  expect(isStale(gpu(119_999), now)).toBe(false);
  expect(isStale(gpu(120_000), now)).toBe(true);
});

test("stale GPUs are left out of every sum", () => {
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

test("what a GPU does not tell is no zero in the mean", () => {
  const silent = gpu(0, {
    power_draw_w: null,
    utilization_pct: null,
    temp_c: null,
    memory_used_mb: null,
    memory_total_mb: null,
  });
  expect(sumGpus([silent, gpu(0)], now)).toMatchObject({ powerW: 100, utilizationPct: 40, memoryUsedMb: 10 });
});

test.each([
  [
    "tell",
    [gpu(0, { power_draw_w: null, utilization_pct: null, temp_c: null, memory_used_mb: null, memory_total_mb: null })],
  ],
  ["report", [gpu(500_000)]],
])("where none of them %s, nothing was measured", (_, gpus) => {
  const { reporting, ...measured } = sumGpus(gpus, now);
  expect(reporting).toBeLessThanOrEqual(1);
  expect(Object.values(measured)).toEqual([undefined, undefined, undefined, undefined, undefined]);
});
