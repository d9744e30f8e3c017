import { describe, expect, test } from "bun:test";
import type { BackendSign } from "../../src/domain/backends.ts";
import { afterProbe, afterSign, type Health, healthy, returned } from "../../src/routing/health-rules.ts";

const signs: Record<string, BackendSign> = {
  u: { kind: "unreachable" },
  f: { kind: "failed", status: 503, retryAfterMs: undefined },
  r: { kind: "responded" },
  e: { kind: "ended" },
  b: { kind: "busy", retryAfterMs: undefined },
  "1": { kind: "begun" },
};

/** What is known after the signs, one letter each: `+` and `-` are what a probe says. */
function after(letters: string, health: Health = healthy): Health {
  let now = health;
  for (const letter of letters) {
    const sign = signs[letter];
    now = sign === undefined ? afterProbe(now, letter === "+") : afterSign(now, sign, 0);
  }
  return now;
}

const stateOf = ({ isOut, isSuspect }: Health): string => (isOut ? "out" : isSuspect ? "suspect" : "in");

describe("a backend is", () => {
  test.each([
    ["u", "in"],
    ["uu", "suspect"],
    ["uru", "in"],
    ["ff", "in"],
    ["fff", "suspect"],
    ["ffef", "in"],
    // Its heads say success, and its bodies do not.
    ["frfrf", "suspect"],
    ["fffr-", "out"],
    ["fffe-", "in"],
    ["ffbf", "in"],
    // A connection was made.
    ["ufu", "in"],
    ["fuuf", "suspect"],
    ["fff+", "in"],
    ["fff+f", "suspect"],
    ["fff+ef", "in"],
    ["uu+", "in"],
    ["uu+u", "in"],
    ["uu-", "out"],
    ["fff-", "out"],
    // Another of its requests has moved meanwhile.
    ["uur-", "in"],
    ["uu1-", "in"],
    ["uu-r", "out"],
    ["uu-u", "out"],
    ["uu--", "out"],
    ["uu-+", "in"],
    ["uu-+u", "in"],
  ])("after %s %s", (letters, state) => {
    expect(stateOf(after(letters))).toBe(state);
  });
});

test("a backend that is back takes one request until that has its first byte, then twice as many with each", () => {
  expect(after("").warmUp).toBeUndefined();
  expect(after("uu-+")).toEqual(returned);
  const steps = Array.from({ length: 9 }, (_, n) => after("1".repeat(n), returned).warmUp);
  expect(steps).toEqual([1, 2, 4, 8, 16, 32, 64, 128, undefined]);
  expect(after("uu+").warmUp).toBeUndefined();
});

test.each<[BackendSign, number]>([
  [{ kind: "busy", retryAfterMs: 5000 }, 6000],
  [{ kind: "busy", retryAfterMs: undefined }, 1000],
  [{ kind: "busy", retryAfterMs: 3_600_000 }, 61_000],
  [{ kind: "failed", status: 503, retryAfterMs: 2000 }, 3000],
])("a backend that says when to come again is left alone until then: %j", (sign, until) => {
  const { busyUntil } = afterSign(healthy, sign, 1000);
  expect(busyUntil).toBe(until);
  // A shorter pause does not end a longer one.
  expect(afterSign({ ...healthy, busyUntil: 50_000 }, sign, 1000).busyUntil).toBe(Math.max(until, 50_000));
});

test("a backend that fails though it is up is left alone for longer each time, until a response of it ends well", () => {
  const pauses = Array.from({ length: 10 }, (_, n) => after("f".repeat(n)).busyUntil);
  expect(pauses).toEqual([0, 0, 0, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
  expect(after("fff+f").busyUntil).toBe(2000);
  expect(after("fffeff").busyUntil).toBe(1000);
});
