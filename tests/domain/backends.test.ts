import { describe, expect, test } from "bun:test";
import { type Expectation, expectedCachedTokens, expectedShare, regretTokens } from "../../src/domain/backends.ts";
import type { CountedUsage } from "../../src/domain/usage.ts";

const expectation = (toRead: number, elsewhere?: number): Expectation =>
  Object.assign({ tokens: 1000, isOwn: true, toRead, elsewhere });
const usage = (fields: Partial<CountedUsage> = {}): CountedUsage => ({ inputTokens: 200, outputTokens: 5, ...fields });

describe("what was expected of a backend's cache", () => {
  test.each([
    ["most of a conversation that it had", expectation(100), usage(), 180],
    ["nothing of one that it has not seen", expectation(1000), usage(), 0],
    ["nothing of a body that is shorter than the least work", expectation(4000), usage(), 0],
    [
      "a share of all input where the cached part comes on top",
      expectation(500),
      usage({ cachedBesideInputTokens: 200 }),
      200,
    ],
    ["unknown where nothing was reported", expectation(100), undefined, undefined],
  ])("is %s", (_, given, reported, expected) => {
    expect(expectedCachedTokens(given, reported)).toBe(expected);
  });

  test("is a share of nothing where there is no body", () => {
    expect(expectedShare({ tokens: 0, toRead: 400, isOwn: true, elsewhere: undefined })).toBe(0);
  });
});

describe("the regret of a choice", () => {
  test.each([
    ["nothing if the cache had what was expected", expectation(100, 1000), usage({ cachedInputTokens: 180 }), 0],
    ["nothing if another would have had as much to read", expectation(100, 1000), usage({ cachedInputTokens: 0 }), 0],
    ["what another would not have had to read", expectation(100, 400), usage({ cachedInputTokens: 0 }), 120],
    ["all of it if another was idle and had it all", expectation(100, -50), usage({ cachedInputTokens: 0 }), 200],
    ["nothing if no other could take it", expectation(100), usage({ cachedInputTokens: 0 }), 0],
    ["all that it read where nothing was cached, or reported", expectation(100, 0), usage(), 200],
    ["unknown, so nothing, without usage", expectation(100, 0), undefined, 0],
    ["nothing without tokens", expectation(100, 0), { inputTokens: 0, outputTokens: 0, cachedInputTokens: 0 }, 0],
  ])("is %s", (_, given, reported, expected) => {
    expect(regretTokens(given, reported)).toBe(expected);
  });
});
