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
  code: undefined,
  streamed: true,
  upstreamMs: 1.26,
  firstByteMs: undefined,
  durationMs: 12.345,
  usage: { inputTokens: 3, outputTokens: 4 },
};
const nextTick = (): Promise<void> => new Promise(setImmediate);

function createWitness(): RequestObserver & { told: string[] } {
  const told: string[] = [];
  return { told, started: () => void told.push("started"), finished: ({ path }) => void told.push(path) };
}

test("starts are reported at once, ends at the end of the tick, each once and in order", async () => {
  const witness = createWitness();
  const observer = observePerTick(witness);
  observer.started();
  observer.finished({ ...record, path: "/v1/a" });
  observer.finished({ ...record, path: "/v1/b" });
  expect(witness.told).toEqual(["started"]);
  await nextTick();
  expect(witness.told).toEqual(["started", "/v1/a", "/v1/b"]);
  observer.finished({ ...record, path: "/v1/c" });
  await nextTick();
  await nextTick();
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
