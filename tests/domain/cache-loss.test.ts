import { expect, test } from "bun:test";
import { findCacheLoss, type LastTurn } from "../../src/domain/cache-loss.ts";
import type { CountedUsage } from "../../src/domain/usage.ts";

const usage = (inputTokens: number, cachedInputTokens?: number): CountedUsage => ({
  inputTokens,
  outputTokens: 1,
  cachedInputTokens,
});
const all: LastTurn = { share: 1, lost: undefined };

test.each([
  ["all of it came from the cache", all, usage(10_000, 9000), undefined],
  ["half of it did", all, usage(10_000, 5000), undefined],
  ["nothing did, and nothing had changed", all, usage(10_000, 0), "evicted"],
  ["nothing was reported, as of nothing cached", all, usage(10_000), "evicted"],
  [
    "little did, because the tools had changed",
    { share: 0.9, lost: "tools_changed" },
    usage(10_000, 200),
    "tools_changed",
  ],
  [
    "all of it did, though the tools had changed",
    { share: 0.9, lost: "tools_changed" },
    usage(10_000, 9000),
    undefined,
  ],
  ["what was there before did, which was little", { share: 0.1, lost: undefined }, usage(10_000, 600), undefined],
  ["it was too short to tell", all, usage(499), undefined],
  ["no usage was reported", all, undefined, undefined],
] as const)("why a turn's input did not come from the cache, if %s", (_, lastTurn, given, expected) => {
  expect(findCacheLoss(lastTurn, "a", given, new Set(["a"]))).toBe(expected);
});

test("cached input beside the input is part of what might have been cached", () => {
  const given = { ...usage(100, 900), cachedBesideInputTokens: 900 };
  expect(findCacheLoss(all, "a", given, new Set(["a"]))).toBeUndefined();
  expect(findCacheLoss(all, "a", { ...usage(1000, 100), cachedBesideInputTokens: 100 }, new Set(["a"]))).toBe(
    "evicted",
  );
});

test("a backend that has never reported cached input is not said to evict", () => {
  const reporters = new Set<string>();
  expect(findCacheLoss(all, "a", usage(10_000), reporters)).toBeUndefined();
  expect(findCacheLoss(all, "a", usage(10_000, 9000), reporters)).toBeUndefined();
  expect(findCacheLoss(all, "a", usage(10_000), reporters)).toBe("evicted");
  expect(findCacheLoss(all, "b", usage(10_000), reporters)).toBeUndefined();
  expect(findCacheLoss({ share: 1, lost: "elsewhere" }, "b", usage(10_000), reporters)).toBe("elsewhere");
});
