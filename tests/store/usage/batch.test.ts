import { expect, test } from "bun:test";
import { createUsageBatch, type FlushedUsage, halvesOf, partsByKeys } from "../../../src/store/usage/batch.ts";
import { usageIncrement } from "../test-store.ts";

const event = { keyId: 1, closedAt: 120_000, inputTokens: 10, outputTokens: 2 };

test("a batch keeps the ids of 100,000 responses, and counts the tokens of further ones without their ids", () => {
  const batch = createUsageBatch();
  for (let n = 0; n < 100_001; n++) batch.add({ ...event, responseId: `response ${n}` });
  expect(batch.add({ ...event, inputTokens: 15, responseId: "response 0" })).toBe(false);
  const { increments, responses } = batch.usage();
  expect(responses).toHaveLength(100_000);
  expect(responses[0]).toMatchObject({ inputTokens: 15, outputTokens: 2 });
  expect(increments).toEqual([
    { keyId: 1, minute: 2, requestCount: 100_002, inputTokens: 10, outputTokens: 2, lastClosedAt: 120_000 },
  ]);
});

const incrementsOf = (...keyIds: number[]) => keyIds.map((keyId) => usageIncrement({ keyId, minute: 2 }));
const responsesOf = (...keyIds: number[]) =>
  keyIds.map((keyId) => Object.assign({}, event, { keyId, responseId: `response ${keyId}` }));
const keysOf = ({ increments, responses }: FlushedUsage) => [
  increments.map(({ keyId }) => keyId),
  responses.map(({ keyId }) => keyId),
];

test.each<[number[], number[], number[][][] | undefined]>([
  [[1], [], undefined],
  [[], [1], undefined],
  [
    [1],
    [1],
    [
      [[1], []],
      [[], [1]],
    ],
  ],
  [
    [1, 2, 3],
    [],
    [
      [[1, 2], []],
      [[3], []],
    ],
  ],
  [
    [],
    [1, 2, 3],
    [
      [[], [1]],
      [[], [2, 3]],
    ],
  ],
  [
    [1, 2],
    [1, 2],
    [
      [[1], [1]],
      [[2], [2]],
    ],
  ],
])("increments of keys %p and responses of keys %p are halved", (increments, responses, halves) => {
  const usage = { increments: incrementsOf(...increments), responses: responsesOf(...responses), settled: [] };
  expect(halvesOf(usage)?.map(keysOf)).toEqual(halves);
});

test("any usage can be halved until each part has one row", () => {
  const rows = (usage: FlushedUsage): number[] => {
    const halves = halvesOf(usage);
    return halves === undefined ? [usage.increments.length + usage.responses.length] : halves.flatMap(rows);
  };
  for (let increments = 0; increments < 12; increments++) {
    for (let responses = 0; responses < 12; responses++) {
      const keys = (count: number) => Array.from({ length: count }, (_, n) => n);
      const usage = {
        increments: incrementsOf(...keys(increments)),
        responses: responsesOf(...keys(responses)),
        settled: [],
      };
      const total = increments + responses;
      expect(rows(usage)).toEqual(total === 0 ? [0] : Array.from({ length: total }, () => 1));
    }
  }
});

test("the usage of some keys is split off, after that of the others", () => {
  const usage = { increments: incrementsOf(1, 2, 3), responses: responsesOf(3, 4), settled: [] };
  expect(partsByKeys(usage, new Set()).map(keysOf)).toEqual([
    [
      [1, 2, 3],
      [3, 4],
    ],
  ]);
  expect(partsByKeys(usage, new Set([3])).map(keysOf)).toEqual([
    [[1, 2], [4]],
    [[3], [3]],
  ]);
  expect(partsByKeys(usage, new Set([9])).map(keysOf)).toEqual([
    [
      [1, 2, 3],
      [3, 4],
    ],
  ]);
  expect(partsByKeys(usage, new Set([1, 2, 3, 4])).map(keysOf)).toEqual([
    [
      [1, 2, 3],
      [3, 4],
    ],
  ]);
});
