import { expect, test } from "bun:test";
import { findGpuEntry } from "../../src/gpu-agent/gpu-entry.ts";

const reading = { index: 3, name: "NVIDIA L4" };

test("an entry adds the offset to its id and contains only measured values", () => {
  expect(findGpuEntry({ ...reading, temp_c: 40, power_draw_w: undefined }, 8)).toEqual({
    gpu_id: 11,
    name: "NVIDIA L4",
    temp_c: 40,
  });
});

test("rounds the fields that the server takes as integers, but not the power", () => {
  expect(findGpuEntry({ ...reading, power_draw_w: 71.53, memory_used_mb: 1023.6, utilization_pct: 99.4 }, 0)).toEqual({
    gpu_id: 3,
    name: "NVIDIA L4",
    power_draw_w: 71.53,
    memory_used_mb: 1024,
    utilization_pct: 99,
  });
});

test.each([
  ["power_draw_w", 10_000.1],
  ["power_draw_w", -1],
  ["temp_c", 151],
  ["utilization_pct", 101],
  ["utilization_pct", NaN],
  ["memory_used_mb", Infinity],
] as const)("leaves out a field out of the server's bounds, so that the entry is kept: %s %p", (measure, value) => {
  expect(findGpuEntry({ ...reading, [measure]: value }, 0)).toEqual({ gpu_id: 3, name: "NVIDIA L4" });
});

test("keeps a field at its bound", () => {
  const measured = { power_draw_w: 10_000, temp_c: 150, utilization_pct: 100, memory_used_mb: 0 };
  expect(findGpuEntry({ ...reading, ...measured }, 0)).toEqual({ gpu_id: 3, name: "NVIDIA L4", ...measured });
});

test("an id over 255 has no entry", () => {
  expect(findGpuEntry(reading, 252)?.gpu_id).toBe(255);
  expect(findGpuEntry(reading, 253)).toBeUndefined();
});

test("cuts a long name to 64 characters without splitting one", () => {
  expect(findGpuEntry({ index: 0, name: "x".repeat(70) }, 0)?.name).toBe("x".repeat(64));
  expect(findGpuEntry({ index: 0, name: `${"x".repeat(63)}🚀` }, 0)?.name).toBe("x".repeat(63));
});

test("a GPU without a name gets one", () => {
  expect(findGpuEntry({ index: 0, name: "  " }, 0)?.name).toBe("GPU");
});
