import { expect, test } from "bun:test";
import { createUpstreamFailures } from "../../src/telemetry/observers.ts";
import { memoryLog } from "../store/test-store.ts";
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
  const failures = createUpstreamFailures(
    () => now++,
    memoryLog().log,
    () => false,
  );
  failures.finished({ ...record, cause: undefined, outcome: "refused", status: 401 });
  expect(failures.since()).toBeUndefined();
  failures.finished(record);
  failures.finished({ ...record, outcome: "timed_out", cause: "connect_timeout" });
  failures.finished({ ...record, cause: undefined, outcome: "client_left" });
  expect(failures.since()).toBe(1000);
  failures.finished({ ...record, outcome: "completed", status: 500, cause: undefined, upstreamMs: 4 });
  expect(failures.since()).toBeUndefined();
});

test("a backend that goes and comes has one line each way, where nobody else tells", () => {
  let now = 10_000;
  let isLogged = true;
  const { entries, log } = memoryLog();
  const { finished, since } = createUpstreamFailures(
    () => now,
    log,
    () => isLogged,
  );
  const refused = { ...record, cause: "ECONNREFUSED", backend: "gpu:8000" };
  const answered = { ...record, outcome: "completed", cause: undefined, upstreamMs: 4, durationMs: 5 } as const;
  const lines = () => entries.splice(0).map(({ level, message }) => `${level} ${message}`);
  // One that breaks off may be one request's fault, and a shortage of this host is no backend's.
  finished({ ...record, cause: "ECONNRESET" });
  finished(answered);
  finished({ ...refused, outcome: "refused", cause: "EMFILE" });
  expect([lines(), since()]).toEqual([[], undefined]);
  for (let n = 0; n < 3; n++) finished(refused);
  expect(lines()).toEqual(["warn Backend out"]);
  // Sent before it went.
  finished({ ...answered, durationMs: 60_000 });
  expect(lines()).toEqual([]);
  now += 1000;
  finished(answered);
  finished(answered);
  expect(lines()).toEqual(["info Backend back"]);
  isLogged = false;
  finished(refused);
  expect(lines()).toEqual([]);
});
