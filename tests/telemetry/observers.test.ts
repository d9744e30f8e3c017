import { expect, test } from "bun:test";
import { createInFlight, observeAll, observePerTick } from "../../src/telemetry/observers.ts";
import type { RequestObserver } from "../../src/domain.ts";
import { requestRecord } from "../support/request-record.ts";

const record = requestRecord({ path: "/v1/messages" });
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
