import { expect, test } from "bun:test";
import { splitName } from "../../../console/src/gpus/gpu-name.ts";

test.each([
  ["NVIDIA H100 80GB HBM3", "H100", " 80GB HBM3"],
  ["AMD Instinct MI300X", "Instinct", " MI300X"],
  ["nvidia a100-sxm4-80gb-custom", "a100-sxm4", "-80gb-custom"],
  ["NVIDIA H200", "", "H200"],
  ["NVIDIA", "", "NVIDIA"],
  ["T4", "", "T4"],
  ["", "", ""],
  ["👍".repeat(13), "👍", "👍".repeat(12)],
])("%p loses its vendor, and may lose %p before %p", (name, head, tail) => {
  expect(splitName(name)).toEqual({ head, tail });
});
