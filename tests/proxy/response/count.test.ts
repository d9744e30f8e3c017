import { expect, test } from "bun:test";
import { RequestTracker } from "../../../src/proxy/request-tracker.ts";
import { kindOf } from "../../../src/proxy/stream/body-kind.ts";
import { Count, type CountingRule, countingRuleOf } from "../../../src/proxy/response/count.ts";
import type { UsageEvent } from "../../../src/domain/usage-event.ts";

const json = kindOf("application/json", null);

function startCount(method: string, path: string, status = 200, id: string | undefined = "resp_1") {
  const events: UsageEvent[] = [];
  const record = async (event: UsageEvent) => {
    events.push(event);
    return { inputTokens: event.inputTokens, outputTokens: 1 };
  };
  const upstream = { response: new Response(null, { status }) };
  const tracker = new RequestTracker(
    { addInFlight: () => () => {}, cacheReporters: new Set(), observer: { finished: () => {} }, monotonic: () => 0 },
    { requestId: "req-1", method, path, clientAddress: "192.0.2.7" },
  );
  Object.assign(tracker.record, { modelAsked: "asked", modelSent: "sent", model: "served" });
  const ids = { readId: method === "GET" ? id : undefined, created: method === "POST" ? () => id : undefined };
  const count = new Count(
    {
      upstream,
      keyId: 7,
      method,
      path,
      tracker,
      ...ids,
      admission: undefined,
      reservation: undefined,
    },
    { record, wall: () => 5000 },
  );
  return { count, events };
}

const usage = { inputTokens: 20, outputTokens: 3 };
const bodyOf = (id: string) =>
  Buffer.from(JSON.stringify({ id, created_at: 9, usage: { input_tokens: 20, output_tokens: 3 } }));

const tokensOf = (events: readonly UsageEvent[]) =>
  events.map(({ requestCount, inputTokens, outputTokens, responseId }) => [
    requestCount,
    inputTokens,
    outputTokens,
    responseId,
  ]);
const createsOf = (events: readonly UsageEvent[]) => events.map(({ created }) => created);

test("usage that comes after the commit is recorded as a difference, and without a request", async () => {
  const { count, events } = startCount("POST", "/v1/chat/completions");
  await count.commit({ inputTokens: 20, outputTokens: 3 });
  expect(count.committed).toBeDefined();
  await count.commit({ inputTokens: 20, outputTokens: 5 });
  await count.commit({ inputTokens: 20, outputTokens: 5 });
  expect(tokensOf(events)).toEqual([
    [1, 20, 3, undefined],
    [0, 0, 2, undefined],
  ]);
  expect(events[0]).toMatchObject({ keyId: 7, closedAt: 5000 });
});

test("usage that comes after the commit of a response that is read is recorded in full", async () => {
  const { count, events } = startCount("GET", "/v1/responses/resp_1");
  await count.commit(await count.readWhole(bodyOf("resp_1"), json));
  await count.commit({ inputTokens: 20, outputTokens: 5 });
  expect(tokensOf(events)).toEqual([
    [1, 20, 3, "resp_1"],
    [0, 20, 5, "resp_1"],
  ]);
  expect(count.added).toEqual({ inputTokens: 40, outputTokens: 2 });
});

test("a create counts without a look-up, and tells once of its id and of all that it has reported", async () => {
  const { count, events } = startCount("POST", "/v1/responses");
  await count.commit(await count.readWhole(bodyOf("resp_1"), json));
  await count.commit({ inputTokens: 20, outputTokens: 5 });
  expect(tokensOf(events)).toEqual([
    [1, 20, 3, undefined],
    [0, 0, 2, undefined],
  ]);
  expect(createsOf(events)).toEqual([
    { id: "resp_1", reported: usage },
    { id: "resp_1", reported: { inputTokens: 20, outputTokens: 5 } },
  ]);
});

test("a response is read under the id of the path, whatever it says itself", async () => {
  const { count, events } = startCount("GET", "/v1/responses/resp_1");
  await count.commit(await count.readWhole(bodyOf(""), json));
  expect(tokensOf(events)).toEqual([[1, 20, 3, "resp_1"]]);
});

test("a read without tokens is not looked up", async () => {
  const { count, events } = startCount("GET", "/v1/responses/resp_1");
  await count.commit({ inputTokens: 0, outputTokens: 0 });
  expect(tokensOf(events)).toEqual([[1, 0, 0, undefined]]);
});

test.each<[string, string, CountingRule]>([
  ["POST", "/v1/chat/completions", "all"],
  ["POST", "/v1/embeddings", "all"],
  ["POST", "/v1/anything/new", "all"],
  ["GET", "/v1/chat/completions/chat_1", "none"],
  ["PUT", "/v1/chat/completions", "none"],
  ["GET", "/v1/models", "none"],
  ["POST", "/v1/responses", "all"],
  ["POST", "/v1/responses/", "all"],
  ["POST", "/v1/responses/compact", "all"],
  ["POST", "/v1/responses/cancel", "all"],
  ["POST", "/v1/responses/resp_1/other", "all"],
  ["GET", "/v1/responses", "none"],
  ["GET", "/v1/responses/resp_1", "read"],
  ["GET", "/v1/responses/resp_1/input_items", "read"],
  ["POST", "/v1/responses/resp_1/cancel", "read"],
  ["POST", "/v1//responses//resp_1/%63ancel/", "read"],
  ["DELETE", "/v1/responses/resp_1", "none"],
  ["GET", "/v1//responses/resp_1", "read"],
  ["GET", "/v1/%72esponses/resp_1", "read"],
  ["POST", "/v1/responses2", "all"],
  ["POST", "/v1/files", "none"],
  ["GET", "/v1/files/file_1/content", "none"],
  ["POST", "/v1/batches", "none"],
  ["POST", "/v1/batches/batch_1/cancel", "none"],
  ["POST", "/v1/filesystem", "all"],
])("%s %s counts tokens: %s", (method, path, rule) => {
  expect(countingRuleOf(method, path)).toBe(rule);
});
