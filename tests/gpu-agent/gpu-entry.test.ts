import { expect, test } from "bun:test";
import { findGpuEntry } from "../../src/gpu-agent/gpu-entry.ts";

test("cuts a long name without splitting a character", () => {
  expect(findGpuEntry({ index: 0, name: `${"x".repeat(63)}🚀` }, 0)?.name).toBe("x".repeat(63));
});

test("a GPU without a name gets one", () => {
  expect(findGpuEntry({ index: 0, name: "  " }, 0)?.name).toBe("GPU");
});
