import { expect, test } from "bun:test";
import type { RequestChange } from "../../src/domain/requests.ts";
import { createRequestLog } from "../../src/telemetry/observers.ts";
import { memoryLog } from "../store/test-store.ts";
import { requestRecord } from "../support/request-record.ts";

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
