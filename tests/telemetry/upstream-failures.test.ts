import { expect, test } from "bun:test";
import { createUpstreamFailures } from "../../src/telemetry/observers.ts";
import { requestRecord } from "../support/request-record.ts";

const record = requestRecord({
  status: 502,
  outcome: "upstream_failed",
  code: "upstream_unreachable",
  cause: "ConnectionRefused",
  upstreamMs: undefined,
});

test("the failure lasts from the first failed request until one gets a response", () => {
  let now = 1000;
  const failures = createUpstreamFailures(() => now++);
  failures.finished({ ...record, cause: undefined, outcome: "refused", status: 401 });
  expect(failures.since()).toBeUndefined();
  failures.finished(record);
  failures.finished({ ...record, outcome: "timed_out", cause: "connect_timeout" });
  failures.finished({ ...record, cause: undefined, outcome: "client_left" });
  expect(failures.since()).toBe(1000);
  failures.finished({ ...record, outcome: "completed", status: 500, cause: undefined, upstreamMs: 4 });
  expect(failures.since()).toBeUndefined();
});
