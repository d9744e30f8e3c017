import { beforeEach, expect, test } from "bun:test";
import { createPostLimit, type StartPost } from "../../../src/admin/gpu/gpu.ts";

const time = { now: 0 };
let startPost: StartPost;
beforeEach(() => {
  time.now = 1_000_000;
  startPost = createPostLimit({ perSecond: 10, unfinished: 3 }, () => time.now);
});

/** A POST that ends at once. @returns whether it was admitted */
function post(keyId = 1): boolean {
  try {
    startPost(keyId)[Symbol.dispose]();
    return true;
  } catch {
    return false;
  }
}

test("a key has ten POSTs in any second, and another key its own", () => {
  for (let sent = 0; sent < 5; sent += 1) expect(post()).toBe(true);
  time.now += 900;
  for (let sent = 0; sent < 5; sent += 1) expect(post()).toBe(true);
  expect([post(), post(2)]).toEqual([false, true]);
  time.now += 99;
  expect(post()).toBe(false);
  time.now += 1;
  // The first five are a second old.
  for (let sent = 0; sent < 5; sent += 1) expect(post()).toBe(true);
  expect(post()).toBe(false);
});

test("a clock that is set back does not lock a key out", () => {
  for (let sent = 0; sent < 10; sent += 1) post();
  time.now -= 3_600_000;
  expect(post()).toBe(true);
});
