import { afterEach, beforeEach, expect, jest, test } from "bun:test";
import { type Heartbeat, startHeartbeat } from "../../src/supervisor/heartbeat.ts";

const patience = { everyMs: 5000, mostUnanswered: 6 };

let asked: number;
let hung: number;
let watch: Heartbeat;
beforeEach(() => {
  jest.useFakeTimers();
  [asked, hung] = [0, 0];
  watch = startHeartbeat(patience, { ask: () => void asked++, onUnresponsive: () => void hung++ });
});
afterEach(() => {
  watch[Symbol.dispose]();
  jest.useRealTimers();
});

const pass = (ms: number): unknown => jest.advanceTimersByTime(ms);

test("a process that says nothing is hung after six questions, and is called so once", () => {
  pass(34_999);
  expect([asked, hung]).toEqual([6, 0]);
  pass(1);
  expect([asked, hung]).toEqual([6, 1]);
  pass(600_000);
  expect([asked, hung]).toEqual([6, 1]);
});

test("a process that says anything before the last of them lives on", () => {
  for (let turn = 0; turn < 20; turn++) {
    pass(30_000);
    watch.alive();
  }
  expect(hung).toBe(0);
});

test("a process is not asked any more once it is not watched", () => {
  pass(5000);
  watch[Symbol.dispose]();
  pass(600_000);
  expect([asked, hung]).toEqual([1, 0]);
});
