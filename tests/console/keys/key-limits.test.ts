import { expect, test } from "bun:test";
import {
  freesWhen,
  isAtLimit,
  isNearLimit,
  limitHint,
  limitOf,
  listOf,
  usedLimits,
} from "../../../console/src/keys/key-limits.ts";
import { limitNames } from "../../../src/domain/limits.ts";

const key = (limit: number, used: number, reserved = 0) => ({
  limit_states: { tokens_per_day: { limit, used, reserved, estimated: null } },
});
const unlimited = { limit_states: {} };

test("a key shows only the limits that it has", () => {
  expect(usedLimits(key(100, 7, 5))).toEqual([
    { name: "tokens_per_day", limit: 100, used: 12, reserved: 5, estimated: null },
  ]);
  expect(usedLimits(unlimited)).toEqual([]);
});

test("a key is near its limit from 80 % on", () => {
  expect([79, 80, 100, 120].map((used) => isNearLimit(key(100, used)))).toEqual([false, true, true, true]);
  expect(isNearLimit(unlimited)).toBe(false);
});

test("a key is at its limit once nothing is left, what running requests reserve included", () => {
  expect([key(100, 99), key(100, 100), key(100, 60, 40), unlimited].map(isAtLimit)).toEqual([false, true, true, false]);
});

test.each<[string, number | null | undefined]>([
  ["", null],
  [" ", null],
  ["12", 12],
  ["1M", 1_000_000],
  ["1.5m", 1_500_000],
  ["2.3 M", 2_300_000],
  ["50k", 50_000],
  ["0.5k", 500],
  ["1B", 1_000_000_000],
  ["1,000,000", 1_000_000],
  ["1,234k", 1_234_000],
  ["1.5", undefined],
  ["1.0005k", undefined],
  ["1,5", undefined],
  ["1,00,000", undefined],
  ["0", undefined],
  ["-1", undefined],
  ["1e6", undefined],
  ["1T", undefined],
  ["ten", undefined],
  ["99999999999999999999", undefined],
])("a limit that is typed as %j is %p", (text, limit) => {
  expect(limitOf(text)).toBe(limit);
});

test("the sentence under a limit says what it means", () => {
  const hints = ["1.5M", "1", "", "1,5"].map((text) => limitHint("tokens_per_day", text));
  expect(hints).toEqual([
    "1,500,000 tokens per day",
    "1 token per day",
    "No limit",
    "A whole number such as 1M, 1.5M, 50k or 1,000,000",
  ]);
});

test("an empty field clears a list", () => {
  expect(["", " , ", "a, b*,"].map(listOf)).toEqual([null, null, ["a", "b*"]]);
});

test("what is used frees at the end of a response, within a minute, or with the next day, Monday or month in Seoul", () => {
  const now = Date.parse("2026-12-31T23:59:00+09:00");
  expect(limitNames.map((name) => freesWhen(name, now))).toEqual([
    "Frees when a response ends",
    "Frees within a minute",
    "Frees within a minute",
    "Starts anew on 1 Jan 2027, 00:00:00 KST",
    "Starts anew on 4 Jan 2027, 00:00:00 KST",
    "Starts anew on 1 Jan 2027, 00:00:00 KST",
  ]);
  const inMonth = Date.parse("2026-02-03T00:00:00+09:00");
  expect(freesWhen("tokens_per_day", inMonth)).toBe("Starts anew on 4 Feb 2026, 00:00:00 KST");
  expect(freesWhen("tokens_per_month", inMonth)).toBe("Starts anew on 1 Mar 2026, 00:00:00 KST");
});
