import { expect, test } from "bun:test";
import { gpuColumns, sortGpus } from "../../../console/src/gpus/gpu-sort.ts";
import { parseSort } from "../../../console/src/lib/sort.ts";
import { seoulTimestamp } from "../../../console/src/lib/seoul-time.ts";
import { sampleGpu } from "./sample-gpu.ts";

const now = Date.parse("2026-11-21T10:00:00+09:00");
const recorded_at = seoulTimestamp(now);
const gpus = [
  sampleGpu({ gpu_id: 2, power_draw_w: null, temp_c: 50, recorded_at }),
  sampleGpu({ gpu_id: 0, power_draw_w: 300, temp_c: 50, recorded_at }),
  sampleGpu({ gpu_id: 1, power_draw_w: 0, temp_c: 90, recorded_at }),
];
const idsBy = (text?: string, of = gpus) => sortGpus(of, parseSort(text, gpuColumns), now).map(({ gpu_id }) => gpu_id);

test("at first the silent ones come, then the hot ones, the hottest first, then the others by id", () => {
  const silent = sampleGpu({ gpu_id: 9, recorded_at: seoulTimestamp(now - 500_000) });
  const hotter = sampleGpu({ gpu_id: 7, temp_c: 95, recorded_at });
  expect(idsBy(undefined, [...gpus, hotter, silent])).toEqual([9, 7, 1, 0, 2]);
});

test.each([
  ["gpu", [0, 1, 2]],
  ["-gpu", [2, 1, 0]],
  ["-power", [0, 1, 2]],
  ["power", [2, 1, 0]],
  ["-temperature", [1, 0, 2]],
  ["anything", [1, 0, 2]],
  ["__proto__", [1, 0, 2]],
])("sort=%s gives %j: an unknown value is the lowest, and equal ones are in the order of their ids", (text, ids) => {
  expect(idsBy(text)).toEqual(ids);
});
