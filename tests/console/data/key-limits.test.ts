import { expect, test } from "bun:test";
import { isNearLimit, limitNames, limitOf, listOf, usedLimits } from "../../../console/src/data/key-limits.ts";

const none = Object.fromEntries(limitNames.map((name) => [name, null])) as Record<(typeof limitNames)[number], null>;
const key = (limit: number, used: number) => ({
  ...none,
  tokens_per_day: limit,
  used: { ...none, tokens_per_day: used },
});

test("a key shows only the limits that it has", () => {
  expect(usedLimits(key(100, 7))).toEqual([{ name: "tokens_per_day", limit: 100, used: 7 }]);
  expect(usedLimits({ ...none, used: none })).toEqual([]);
});

test("a key is near its limit from 80 % on", () => {
  expect([79, 80, 100, 120].map((used) => isNearLimit(key(100, used)))).toEqual([false, true, true, true]);
  expect(isNearLimit({ ...none, used: none })).toBe(false);
});

test("an empty field clears a limit or a list", () => {
  expect(["", " ", "12"].map(limitOf)).toEqual([null, null, 12]);
  expect(["", " , ", "a, b*,"].map(listOf)).toEqual([null, null, ["a", "b*"]]);
});
