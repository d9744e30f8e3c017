import { expect, test } from "bun:test";
import { findFreeOffset, listSharedIds } from "../../../console/src/gpus/gpu-hosts.ts";
import { sampleGpu } from "./sample-gpu.ts";

test("the ids that two hosts share are listed once for each pair", () => {
  expect(
    listSharedIds([
      sampleGpu({ gpu_id: 0, host: "a", other_host: "b" }),
      sampleGpu({ gpu_id: 1, host: "b", other_host: "a" }),
      sampleGpu({ gpu_id: 2, host: "b" }),
      sampleGpu({ gpu_id: 3, host: "c", other_host: "b" }),
    ]),
  ).toEqual([
    { hosts: "a and b", gpuIds: [0, 1] },
    { hosts: "b and c", gpuIds: [3] },
  ]);
});

test.each([
  [[], 0],
  [[0], 8],
  [[0, 1, 2, 3, 4, 5, 6, 7], 8],
  [[8], 16],
  [[3, 100], 104],
  [[247], 248],
  [[248], undefined],
  [[255], undefined],
])("beside the ids %j, the next host starts at %p", (ids, offset) => {
  expect(findFreeOffset(ids.map((gpu_id) => ({ gpu_id })))).toBe(offset);
});
