import { expect, test } from "bun:test";
import { nvidiaSmiArguments, nvidiaSmiFailure } from "../../src/gpu-agent/nvidia-smi.ts";

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
