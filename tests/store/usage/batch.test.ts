import { expect, test } from "bun:test";
import { type FlushedUsage, partsByKey, UsageBatch } from "../../../src/store/usage/batch.ts";
import { loggedRecord } from "../logged-requests.ts";
import { usageIncrement } from "../test-store.ts";
import { noUsage } from "../../../src/domain/usage.ts";

const event = { keyId: 1, closedAt: 120_000, inputTokens: 10, outputTokens: 2 };

test("a batch keeps the ids of 100,000 responses, and counts the tokens of further ones without their ids", () => {
  const batch = new UsageBatch();
  for (let n = 0; n < 100_001; n++) batch.add({ ...event, responseId: `response ${n}` });
  expect(batch.add({ ...event, inputTokens: 15, responseId: "response 0" })).toBe(false);
  const { increments, responses } = batch.usage();
  expect(responses).toHaveLength(100_000);
  expect(responses[0]).toMatchObject({ inputTokens: 15, outputTokens: 2 });
  expect(increments).toEqual([
    { keyId: 1, minute: 2, requestCount: 100_002, inputTokens: 10, outputTokens: 2, lastClosedAt: 120_000 },
  ]);
});

test("a create counts at once, and is kept apart from reads, owners and other keys", () => {
  const batch = new UsageBatch();
  const reported = { inputTokens: 10, outputTokens: 2 };
  const created = { id: "one", reported };
  const owned = { ids: ["one"], backend: "gpu" };
  expect(batch.isEmpty()).toBe(true);
  // The first that has it keeps it.
  for (const keyId of [1, 2]) expect(batch.add({ ...event, ...noUsage, keyId, requestCount: 0, owned })).toBe(true);
  expect(batch.isEmpty()).toBe(false);
  expect(batch.usage().increments).toEqual([]);
  expect(batch.add({ ...event, created: { ...created, reported: noUsage } })).toBe(true);
  expect(batch.add({ ...event, created })).toBe(true);
  expect(batch.add({ ...event, keyId: 2, created })).toBe(true);
  expect(batch.add({ ...event, responseId: "one" })).toBe(true);
  expect(batch.add({ ...event, keyId: 2, responseId: "one" })).toBe(true);
  expect(batch.add({ ...event, responseId: "one" })).toBe(false);
  const one = { responseId: "one", closedAt: 120_000, ...reported };
  expect(batch.usage().responses).toEqual([
    { ...one, ...noUsage, keyId: 1, as: "owned", backend: "gpu" },
    { ...one, keyId: 1, as: "created" },
    { ...one, keyId: 2, as: "created" },
    { ...one, keyId: 1 },
    { ...one, keyId: 2 },
  ]);
  expect(batch.usage().increments).toMatchObject([
    { keyId: 1, requestCount: 4, inputTokens: 20 },
    { keyId: 2, requestCount: 2, inputTokens: 10 },
  ]);
});

const incrementsOf = (...keyIds: number[]) => keyIds.map((keyId) => usageIncrement({ keyId, minute: 2 }));
const responsesOf = (...keyIds: number[]) =>
  keyIds.map((keyId) => Object.assign({}, event, { keyId, responseId: `response ${keyId}` }));
const keysOf = ({ increments, responses }: FlushedUsage) => [
  increments.map(({ keyId }) => keyId),
  responses.map(({ keyId }) => keyId),
];

test("usage is split by key, after what belongs to no key that has counts", () => {
  const usage = {
    increments: incrementsOf(1, 2, 1),
    responses: responsesOf(2, 3),
    settled: [{ subjects: [1], instance: "a" }],
  };
  const parts = partsByKey(usage);
  expect(parts.map(keysOf)).toEqual([
    [[], []],
    [[1, 1], []],
    [[2], [2]],
    [[], [3]],
  ]);
  expect(parts.map(({ settled }) => settled.length)).toEqual([0, 1, 1, 1]);
  expect(partsByKey({ increments: [], responses: [], settled: [] }).map(keysOf)).toEqual([[[], []]]);
});

test("an end that came after its request was written is a flush of its own, and goes with the counts of its key", () => {
  const batch = new UsageBatch(true);
  batch.amendRequest(loggedRecord({ keyId: 3, writtenMs: 2, durationMs: 804 }));
  expect(batch.isEmpty()).toBe(false);
  const amendments = [{ keyId: 3, end: { writtenUs: 2000, durationUs: 804_000, responseBytes: 321 } }];
  expect(partsByKey(batch.usage())).toMatchObject([{ requests: { amendments } }]);
  batch.add({ ...event, keyId: 3 });
  expect(partsByKey(batch.usage())).toMatchObject([{ requests: { amendments: [] } }, { requests: { amendments } }]);
});
