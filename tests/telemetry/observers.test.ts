import { expect, test } from "bun:test";
import { batchPerTick, createInFlight, createRequestLog, observeAll } from "../../src/telemetry/observers.ts";
import type { RequestObserver, RequestRecord } from "../../src/domain.ts";
import { memoryLog } from "../store/test-store.ts";

const record: RequestRecord = {
  method: "POST",
  path: "/v1/messages",
  status: 200,
  outcome: "completed",
  keyId: 7,
  code: undefined,
  streamed: true,
  upstreamMs: 1.26,
  firstByteMs: undefined,
  durationMs: 12.345,
  usage: { inputTokens: 3, outputTokens: 4 },
};
const nextTurn = (): Promise<void> => new Promise(setImmediate);

function createWitness(): RequestObserver & { told: string[] } {
  const told: string[] = [];
  return { told, started: () => void told.push("started"), finished: ({ path }) => void told.push(path) };
}

test("what began is told at once, what ended at the turn's end, each once and in order", async () => {
  const witness = createWitness();
  const observer = batchPerTick(witness);
  observer.started();
  observer.finished({ ...record, path: "/v1/a" });
  observer.finished({ ...record, path: "/v1/b" });
  expect(witness.told).toEqual(["started"]);
  await nextTurn();
  expect(witness.told).toEqual(["started", "/v1/a", "/v1/b"]);
  observer.finished({ ...record, path: "/v1/c" });
  await nextTurn();
  await nextTurn();
  expect(witness.told).toEqual(["started", "/v1/a", "/v1/b", "/v1/c"]);
});

test("all observers are told, and one counts what is in flight", () => {
  const [witness, inFlight] = [createWitness(), createInFlight()];
  const observer = observeAll(witness, inFlight);
  observer.started();
  observer.started();
  expect(inFlight.count()).toBe(2);
  observer.finished(record);
  expect([inFlight.count(), witness.told]).toEqual([1, ["started", "started", "/v1/messages"]]);
});

test("the request log tells times to a tenth of a millisecond and tokens, and leaves out what did not happen", () => {
  const { entries, log } = memoryLog();
  const requestLog = createRequestLog(log);
  requestLog.started();
  requestLog.finished(record);
  requestLog.finished({ ...record, usage: undefined });
  const [counted, uncounted] = entries;
  expect(counted as unknown).toEqual({
    time: "1970-01-01T00:00:00.000Z",
    level: "info",
    message: "request",
    method: "POST",
    path: "/v1/messages",
    status: 200,
    outcome: "completed",
    keyId: 7,
    streamed: true,
    upstreamMs: 1.3,
    durationMs: 12.3,
    inputTokens: 3,
    outputTokens: 4,
  });
  expect(uncounted).not.toHaveProperty("inputTokens");
});
