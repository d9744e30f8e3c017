import { expect, test } from "bun:test";
import type { RequestChange, RequestRecord } from "../../src/domain/requests.ts";
import { createRequestLog, createStoredRequestLog } from "../../src/telemetry/observers.ts";
import { memoryLog } from "../store/test-store.ts";
import { requestRecord } from "../support/request-record.ts";
import { loggedRecord } from "../store/logged-requests.ts";

const record = requestRecord({
  path: "/v1/messages",
  upstreamMs: 1.26,
  firstByteMs: undefined,
  durationMs: 12.345,
  usage: { inputTokens: 3, outputTokens: 4 },
});

test("logs tokens and durations to a tenth of a millisecond, and leaves out what did not happen", () => {
  const { entries, log } = memoryLog();
  const requestLog = createRequestLog(log);
  requestLog.finished(record);
  requestLog.finished({ ...record, usage: undefined });
  const [counted, uncounted] = entries;
  expect(counted as unknown).toEqual({
    time: "1970-01-01T00:00:00.000Z",
    level: "info",
    message: "Request ended",
    requestId: "req-1",
    address: "192.0.2.7",
    method: "POST",
    path: "/v1/messages",
    status: 200,
    outcome: "completed",
    keyId: 7,
    modelAsked: "claude-x",
    modelSent: "served",
    streamed: true,
    upstreamMs: 1.3,
    durationMs: 12.3,
    inputTokens: 3,
    outputTokens: 4,
  });
  expect(uncounted).not.toHaveProperty("inputTokens");
});

test("logs the cause of a failed call to the backend, and how much of its response had come", () => {
  const { entries, log } = memoryLog();
  const requestLog = createRequestLog(log);
  requestLog.finished({ ...record, outcome: "upstream_failed", code: "upstream_unreachable", cause: "ECONNRESET" });
  expect(entries[0]).toMatchObject({ code: "upstream_unreachable", cause: "ECONNRESET", receivedBytes: 5_000 });
});

test("names the client rules that changed a request, and no other changes", () => {
  const { entries, log } = memoryLog();
  const requestLog = createRequestLog(log);
  const changed = (...kinds: RequestChange[]): void =>
    requestLog.finished({ ...record, changes: { kinds, maxTokens: undefined } });
  changed("model", "system_turns_to_user", "drop_billing_line");
  changed("model");
  const [mended, renamed] = entries;
  expect(mended).toMatchObject({ clientRules: "system_turns_to_user, drop_billing_line" });
  expect(Object.keys(renamed ?? {})).not.toContain("clientRules");
});

function start(mayLogShared?: (source: string) => Promise<boolean>) {
  const logged: RequestRecord[] = [];
  const amended: RequestRecord[] = [];
  const time = { now: 1_000_000, omitted: 0 };
  const { finished } = createStoredRequestLog({
    logRequest: (request) => void logged.push(request),
    amendRequest: (request) => void amended.push(request),
    mayLogShared,
    networkOf: (address) => address.slice(0, 4),
    onOmitted: () => void time.omitted++,
    clock: () => time.now,
  });
  return { logged, amended, time, finished };
}

const refused = (fields: Partial<RequestRecord> = {}): RequestRecord =>
  loggedRecord({ outcome: "refused", status: 401, code: "invalid_api_key", keyId: undefined, ...fields });

test("a request that the ledger has is not logged again but corrected if it ended later, any other one is", () => {
  const { logged, amended, finished } = start();
  finished(loggedRecord({ writtenMs: 120 }));
  const late = loggedRecord({ writtenMs: 20 });
  finished(late);
  finished(loggedRecord({ outcome: "upstream_failed", status: 502 }));
  expect(logged.map(({ outcome }) => outcome)).toEqual(["upstream_failed"]);
  expect(amended).toEqual([late]);
});

test("sixty refused requests a minute are logged for each code and network, and the rest are counted", () => {
  const { logged, time, finished } = start();
  for (let n = 0; n < 100; n++) finished(refused({ clientAddress: `192.${n}` }));
  expect([logged.length, time.omitted]).toEqual([60, 40]);
  finished(refused({ code: "too_many_bytes_held", keyId: 1 }));
  finished(refused({ clientAddress: "10.0.0.1" }));
  expect(logged).toHaveLength(62);
  time.now += 60_000;
  finished(refused());
  expect([logged.length, time.omitted]).toEqual([63, 40]);
});

test("requests without a key are limited whatever their outcome, since anybody can send them", () => {
  const { logged, finished } = start();
  for (let n = 0; n < 100; n++) finished(loggedRecord({ keyId: undefined, method: "OPTIONS", status: 204 }));
  expect(logged).toHaveLength(60);
});

test("failures of requests with a key are not limited", () => {
  const { logged, finished } = start();
  for (let n = 0; n < 100; n++) finished(loggedRecord({ outcome: "timed_out", status: 504 }));
  expect(logged).toHaveLength(100);
});

test("a flood from many networks takes a bounded memory", () => {
  const { logged, time, finished } = start();
  for (let n = 0; n < 10_050; n++) finished(refused({ clientAddress: `${n}`.padStart(4, "0"), code: `${n}` }));
  expect([logged.length, time.omitted]).toEqual([10_000, 50]);
});

test("a clock that is set back starts a new minute", () => {
  const { logged, time, finished } = start();
  for (let n = 0; n < 70; n++) finished(refused());
  time.now -= 3_600_000;
  finished(refused());
  expect(logged).toHaveLength(61);
});

test("refused requests are logged as far as all processes may, and one that may not by itself asks nobody", async () => {
  const asked: string[] = [];
  const { logged, time, finished } = start(async (source) => asked.push(source) <= 20);
  for (let n = 0; n < 100; n++) finished(refused());
  await Bun.sleep(0);
  expect([asked.length, logged.length, time.omitted]).toEqual([60, 20, 80]);
  finished(loggedRecord({ outcome: "timed_out" }));
  expect([asked.length, logged.length]).toEqual([60, 21]);
});
