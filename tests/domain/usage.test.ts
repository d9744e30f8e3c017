import { expect, test } from "bun:test";
import {
  addUsage,
  addUsageTo,
  createIncrement,
  countUsage,
  limitUsage,
  listedUsageFields,
  noUsage,
  pickUsage,
  subtractUsage,
} from "../../src/domain/usage.ts";

const usage = { inputTokens: 7, outputTokens: 5, cachedInputTokens: 3, reasoningTokens: 2 };
const unreported = { inputTokens: 7, outputTokens: 5 };

test("lists have each part after its total", () => {
  expect(listedUsageFields).toEqual(["inputTokens", "cachedInputTokens", "outputTokens", "reasoningTokens"]);
});

test("the counters of an event are picked from its other members", () => {
  const event = { ...usage, cachedBesideInputTokens: 1, keyId: 4, closedAt: 9 };
  const of = { keyId: 4, teamId: 5, userId: 6, model: "m", minute: 3, requestCount: 1, lastClosedAt: 9 };
  expect(pickUsage(event)).toStrictEqual(usage);
  const charge = { besideTokens: undefined, estimatedTokens: undefined };
  expect(createIncrement(event, of)).toStrictEqual({ ...usage, cachedBesideInputTokens: 1, ...charge, ...of });
});

test("cached input counts beside the input if the backend reports it apart", () => {
  expect(countUsage(usage, true)).toEqual({ ...usage, cachedBesideInputTokens: 3 });
  expect(countUsage(usage, false)).toEqual(usage);
});

test("parts that neither side reports stay unset in a sum", () => {
  expect(addUsage(unreported, unreported)).toEqual({ inputTokens: 14, outputTokens: 10 });
  expect(addUsage(unreported, usage)).toEqual({ ...usage, inputTokens: 14, outputTokens: 10 });
  expect(addUsage(usage, usage)).toEqual(subtractUsage(addUsage(usage, addUsage(usage, usage)), usage));
  expect(noUsage).toEqual({ inputTokens: 0, outputTokens: 0 });
});

test("an increment is added to in place, with what counts beside the input", () => {
  const sum = { ...unreported, cachedBesideInputTokens: 1 };
  addUsageTo(sum, { ...usage, cachedBesideInputTokens: 2 });
  expect(sum).toEqual({ ...usage, inputTokens: 14, outputTokens: 10, cachedBesideInputTokens: 3 });
});

test("a difference has a number for each part", () => {
  expect(subtractUsage(usage, unreported)).toEqual({ ...usage, inputTokens: 0, outputTokens: 0 });
  expect(subtractUsage(unreported, noUsage)).toEqual({ ...unreported, cachedInputTokens: 0, reasoningTokens: 0 });
});

test("limited to lower totals, no part exceeds its own", () => {
  const limited = { inputTokens: 2, outputTokens: 4, cachedInputTokens: 2, reasoningTokens: 2 };
  expect(limitUsage(usage, { inputTokens: 2, outputTokens: 4 })).toEqual(limited);
  expect(limitUsage(unreported, noUsage)).toEqual(noUsage);
});
