import { expect, test } from "bun:test";
import { createInFlight, createUpstreamFailures, observePerTick } from "../../src/telemetry/observers.ts";
import { requestRecord } from "../support/request-record.ts";
import { runningRequest } from "../support/running-request.ts";
import type { RequestObserver } from "../../src/domain/requests.ts";
import { memoryLog } from "../store/test-store.ts";

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

const lost = requestRecord({
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
  failures.finished({ ...lost, cause: undefined, outcome: "refused", status: 401 });
  expect(failures.since()).toBeUndefined();
  failures.finished(lost);
  failures.finished({ ...lost, outcome: "timed_out", cause: "connect_timeout" });
  failures.finished({ ...lost, cause: undefined, outcome: "client_left" });
  expect(failures.since()).toBe(1000);
  failures.finished({ ...lost, outcome: "completed", status: 500, cause: undefined, upstreamMs: 4 });
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
  const refused = { ...lost, cause: "ECONNREFUSED", backend: "gpu:8000" };
  const answered = { ...lost, outcome: "completed", cause: undefined, upstreamMs: 4, durationMs: 5 } as const;
  const lines = () => entries.splice(0).map(({ level, message }) => `${level} ${message}`);
  // One that breaks off may be one request's fault, and a shortage of this host is no backend's.
  finished({ ...lost, cause: "ECONNRESET" });
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
