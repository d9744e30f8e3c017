import { expect, test } from "bun:test";
import { findNvidiaReading, nvidiaSmiArguments, nvidiaSmiFailure } from "../../src/gpu-agent/nvidia-smi.ts";

const nothing = {
  power_draw_w: undefined,
  temp_c: undefined,
  memory_used_mb: undefined,
  memory_total_mb: undefined,
  utilization_pct: undefined,
};

test("reads the fields of a line", () => {
  expect(findNvidiaReading("7, NVIDIA A100-SXM4-80GB, 63.41, 31, 4, 81920, 12")).toEqual({
    index: 7,
    name: "NVIDIA A100-SXM4-80GB",
    power_draw_w: 63.41,
    temp_c: 31,
    memory_used_mb: 4,
    memory_total_mb: 81920,
    utilization_pct: 12,
  });
});

test.each([
  "[N/A]",
  "[Not Supported]",
  "[Unknown Error]",
  "[Insufficient Permissions]",
  "[GPU is lost]",
  "ERR!",
  "N/A",
  "",
])("%p is a missing value", (cell) => {
  const line = `0, Tesla K80, ${Array(5).fill(cell).join(", ")}`;
  expect(findNvidiaReading(line)).toEqual({ index: 0, name: "Tesla K80", ...nothing });
});

test("a GPU with MIG enabled has no utilization", () => {
  const reading = findNvidiaReading("0, NVIDIA A100-SXM4-80GB, 88.02, 35, 20480, 81920, [N/A]");
  expect(reading).toMatchObject({ power_draw_w: 88.02, memory_used_mb: 20480, utilization_pct: undefined });
});

test("keeps a comma in the name", () => {
  expect(findNvidiaReading("1, Quadro RTX, Special, 4000, 20.00, 30, 1, 8192, 0")).toMatchObject({
    name: "Quadro RTX, Special, 4000",
    power_draw_w: 20,
    utilization_pct: 0,
  });
});

test.each([
  "",
  "No devices were found",
  "index, name, power.draw [W], temperature.gpu, memory.used [MiB], memory.total [MiB], utilization.gpu [%]",
  "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.",
  "0, NVIDIA L4, 30.1, 40",
  "-1, NVIDIA L4, 30.1, 40, 1, 2, 3",
])("a line that is not about a GPU gives no reading: %p", (line) => {
  expect(findNvidiaReading(line)).toBeUndefined();
});

test("uses the loop mode if there is an interval", () => {
  expect(nvidiaSmiArguments(1000).slice(-2)).toEqual(["-lms", "1000"]);
  expect(nvidiaSmiArguments(undefined)).not.toContain("-lms");
});

test.each([
  [
    9,
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
    "the NVIDIA driver is not running",
  ],
  [6, "No devices were found", "sees no GPU"],
  [15, "Unable to determine the device handle for GPU 0000:3B:00.0: GPU is lost.", "does not respond"],
  [18, "Failed to initialize NVML: Driver/library version mismatch", "not reloaded"],
  [2, 'Field "power.draw" is not a valid field to query.', "too old"],
  [1, "", "exited with status 1"],
])("explains exit status %i to the operator", (status, message, explanation) => {
  const failure = nvidiaSmiFailure(status, message);
  expect(failure).toContain(explanation);
  expect(failure).toContain(message);
});
