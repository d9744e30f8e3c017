import { expect, test } from "bun:test";
import { listInFlight } from "../../../src/admin/requests/in-flight.ts";
import { createInFlight } from "../../../src/telemetry/observers.ts";
import { runningRequest } from "../../support/running-request.ts";
import { backendOf, fileCatalog } from "../../support/catalog.ts";
import type { RunningHandle } from "../../../src/domain/requests.ts";

const handle = (requestId: string): RunningHandle => ({ describe: () => runningRequest({ requestId }), end: () => {} });

test.each([
  [1000, false],
  [1001, true],
  [1500, true],
])("of %i requests in flight, the oldest 1,000 are listed, and whether there are more: %p", async (count, more) => {
  const inFlight = createInFlight();
  for (let n = 0; n < count; n++) inFlight.add(handle(`r${n}`));
  const list = listInFlight({
    store: { requests: { keyNames: async () => [] } } as never,
    clock: () => 0,
    catalog: () => fileCatalog([backendOf("gpu-a")], []),
    backendStates: async () => [],
    running: async () => inFlight.list(),
  });
  const body = await list();
  expect([body.requests.length, body.requests.at(-1)?.request_id, body.more]).toEqual([1000, "r999", more]);
});
