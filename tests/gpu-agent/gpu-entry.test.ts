import { expect, test } from "bun:test";
import { findGpuEntry } from "../../src/gpu-agent/gpu-entry.ts";

const reading = { index: 3, name: "NVIDIA L4" };

test.each([
  ["power_draw_w", -1],
  ["utilization_pct", NaN],
  ["memory_used_mb", Infinity],
] as const)("leaves out a field out of the server's bounds, so that the entry is kept: %s %p", (measure, value) => {
  expect(findGpuEntry({ ...reading, [measure]: value }, 0)).toEqual({ gpu_id: 3, name: "NVIDIA L4" });
});

test("cuts a long name without splitting a character", () => {
  expect(findGpuEntry({ index: 0, name: `${"x".repeat(63)}🚀` }, 0)?.name).toBe("x".repeat(63));
});

test("a GPU without a name gets one", () => {
  expect(findGpuEntry({ index: 0, name: "  " }, 0)?.name).toBe("GPU");
});
