import { expect, test } from "bun:test";
import { createInFlight, observePerTick } from "../../src/telemetry/observers.ts";
import { requestRecord } from "../support/request-record.ts";
import { runningRequest } from "../support/running-request.ts";
import type { RequestObserver } from "../../src/domain/requests.ts";

const record = requestRecord({ path: "/v1/messages" });
const nextTick = (): Promise<void> => new Promise(setImmediate);

function createRecorder(): RequestObserver & { calls: string[] } {
  const calls: string[] = [];
  return { calls, finished: ({ path }) => void calls.push(path) };
}

test("reports ends at the end of the tick, once and in order", async () => {
  const recorder = createRecorder();
  const observer = observePerTick([recorder]);
  observer.finished({ ...record, path: "/v1/a" });
  observer.finished({ ...record, path: "/v1/b" });
  expect(recorder.calls).toEqual([]);
  await nextTick();
  expect(recorder.calls).toEqual(["/v1/a", "/v1/b"]);
  observer.finished({ ...record, path: "/v1/c" });
  await nextTick();
  await nextTick();
  expect(recorder.calls).toEqual(["/v1/a", "/v1/b", "/v1/c"]);
});

test("calls all observers, and those of causes only for a request that failed with one", async () => {
  const [first, second, ofCauses] = [createRecorder(), createRecorder(), createRecorder()];
  const { finished } = observePerTick([first, second], [ofCauses]);
  finished(record);
  finished({ ...record, path: "/v1/failed", cause: "ECONNREFUSED" });
  await nextTick();
  const all = ["/v1/messages", "/v1/failed"];
  expect([first.calls, second.calls, ofCauses.calls]).toEqual([all, all, ["/v1/failed"]]);
});

test("knows the requests in flight, oldest first whatever has ended, and ends one by its id", async () => {
  const inFlight = createInFlight();
  const ended: string[] = [];
  const add = (requestId: string) =>
    inFlight.add({ describe: () => runningRequest({ requestId }), end: () => void ended.push(requestId) });
  const remove = ["a", "b", "c", "d"].map(add);
  remove[1]?.();
  const list = inFlight.list();
  expect([inFlight.count(), list.map(({ requestId }) => requestId)]).toEqual([3, ["a", "c", "d"]]);
  expect([inFlight.end(list[1]?.id ?? ""), inFlight.end("no such id"), ended]).toEqual([true, false, ["c"]]);
  const other = createInFlight();
  other.add({ describe: () => runningRequest(), end: () => void ended.push("another process's") });
  expect([other.end(list[0]?.id ?? ""), ended]).toEqual([false, ["c"]]);
  const idle = inFlight.idle().then(() => "idle");
  for (const each of remove) each();
  expect([await idle, inFlight.count(), inFlight.list()]).toEqual(["idle", 0, []]);
});
