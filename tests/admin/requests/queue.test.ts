import { expect, test } from "bun:test";
import { queueOf } from "../../../src/admin/requests/queue.ts";
import type { BackendStatus } from "../../../src/domain/backends.ts";
import { backendOf, fileCatalog } from "../../support/catalog.ts";
import { runningRequest } from "../../support/running-request.ts";

const queued = (requestId: string, model?: string) => runningRequest({ requestId, model, state: "queued" });
const status = (name: string, inFlight: number, state: BackendStatus["state"] = "in"): BackendStatus => ({
  name,
  state,
  inFlight,
  since: 0,
  waiting: 0,
});
const limited = [backendOf("gpu-a", { maxConcurrency: 8 }), backendOf("gpu-b", { maxConcurrency: 4 })];

test.each([
  ["all are in", limited, [status("gpu-a", 8), status("gpu-b", 3)], { places: 12, used: 11, waiting: 2 }],
  ["one drains", limited, [status("gpu-a", 8), status("gpu-b", 3, "draining")], { places: 8, used: 11, waiting: 2 }],
  ["none is in", limited, [status("gpu-a", 0, "out")], { places: 0, used: 0, waiting: 2 }],
  ["one has no limit", [...limited, backendOf("gpu-c")], [status("gpu-c", 1)], { places: null, used: 1, waiting: 2 }],
])("of the places at backends, if %s", (_, backends, states, expected) => {
  const running = [queued("a"), queued("b"), runningRequest()];
  expect(queueOf(fileCatalog(backends, []), states, running)).toEqual(expected);
});
