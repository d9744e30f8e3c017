import { expect, test } from "bun:test";
import { createInFlight, observeAll, observePerTick } from "../../src/telemetry/observers.ts";
import type { RequestObserver, RequestRecord } from "../../src/domain.ts";

const record: RequestRecord = {
  requestId: "req-1",
  clientAddress: "192.0.2.7",
  method: "POST",
  path: "/v1/messages",
  status: 200,
  outcome: "completed",
  keyId: 7,
  modelAsked: "claude-x",
  modelSent: "served",
  code: undefined,
  cause: undefined,
  receivedBytes: 5_000,
  streamed: true,
  upstreamMs: 1.26,
  firstByteMs: undefined,
  durationMs: 12.345,
  usage: { inputTokens: 3, outputTokens: 4 },
};
const nextTick = (): Promise<void> => new Promise(setImmediate);

function createRecorder(): RequestObserver & { calls: string[] } {
  const calls: string[] = [];
  return { calls, started: () => void calls.push("started"), finished: ({ path }) => void calls.push(path) };
}

test("reports starts immediately, and ends at the end of the tick, once and in order", async () => {
  const recorder = createRecorder();
  const observer = observePerTick(recorder);
  observer.started();
  observer.finished({ ...record, path: "/v1/a" });
  observer.finished({ ...record, path: "/v1/b" });
  expect(recorder.calls).toEqual(["started"]);
  await nextTick();
  expect(recorder.calls).toEqual(["started", "/v1/a", "/v1/b"]);
  observer.finished({ ...record, path: "/v1/c" });
  await nextTick();
  await nextTick();
  expect(recorder.calls).toEqual(["started", "/v1/a", "/v1/b", "/v1/c"]);
});

test("calls all observers, and counts the requests in flight", () => {
  const [recorder, inFlight] = [createRecorder(), createInFlight()];
  const observer = observeAll(recorder, inFlight);
  observer.started();
  observer.started();
  expect(inFlight.count()).toBe(2);
  observer.finished(record);
  expect([inFlight.count(), recorder.calls]).toEqual([1, ["started", "started", "/v1/messages"]]);
});
