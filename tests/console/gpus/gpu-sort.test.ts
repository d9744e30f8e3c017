import { expect, test } from "bun:test";
import { formatGpuSort, nextGpuSort, parseGpuSort, sortGpus } from "../../../console/src/gpus/gpu-sort.ts";
import { sampleGpu } from "./sample-gpu.ts";

const gpus = [
  sampleGpu({ gpu_id: 2, power_draw_w: null, temp_c: 50 }),
  sampleGpu({ gpu_id: 0, power_draw_w: 300, temp_c: 50 }),
  sampleGpu({ gpu_id: 1, power_draw_w: 0, temp_c: 90 }),
];
const idsBy = (text: string) => sortGpus(gpus, parseGpuSort(text)).map(({ gpu_id }) => gpu_id);

test.each([
  ["gpu", [0, 1, 2]],
  ["-gpu", [2, 1, 0]],
  ["-power", [0, 1, 2]],
  ["power", [2, 1, 0]],
  ["-temperature", [1, 0, 2]],
  ["anything", [0, 1, 2]],
  ["__proto__", [0, 1, 2]],
])("sort=%s gives %j: an unknown value is the lowest, and equal ones are in the order of their ids", (text, ids) => {
  expect(idsBy(text)).toEqual(ids);
});

test("the first click on a measure shows its highest values, the second one its lowest", () => {
  const first = nextGpuSort(parseGpuSort(undefined), "temperature");
  expect(formatGpuSort(first)).toBe("-temperature");
  expect(formatGpuSort(nextGpuSort(first, "temperature"))).toBe("temperature");
  expect(formatGpuSort(nextGpuSort(first, "gpu"))).toBe("gpu");
});
