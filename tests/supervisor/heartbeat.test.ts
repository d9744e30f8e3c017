import { afterEach, beforeEach, expect, jest, test } from "bun:test";
import { type Heartbeat, startHeartbeat } from "../../src/supervisor/heartbeat.ts";

const limits = { intervalMs: 5000, maxMissed: 6 };

let pings: number;
let unresponsive: number;
let heartbeat: Heartbeat;
beforeEach(() => {
  jest.useFakeTimers();
  [pings, unresponsive] = [0, 0];
  heartbeat = startHeartbeat(limits, { ping: () => void pings++, onUnresponsive: () => void unresponsive++ });
});
afterEach(() => {
  heartbeat[Symbol.dispose]();
  jest.useRealTimers();
});

const pass = (ms: number): unknown => jest.advanceTimersByTime(ms);

test("reports a silent process as unresponsive once, after six pings", () => {
  pass(34_999);
  expect([pings, unresponsive]).toEqual([6, 0]);
  pass(1);
  expect([pings, unresponsive]).toEqual([6, 1]);
  pass(600_000);
  expect([pings, unresponsive]).toEqual([6, 1]);
});

test("any message before the last ping keeps the process alive", () => {
  for (let round = 0; round < 20; round++) {
    pass(30_000);
    heartbeat.alive();
  }
  expect(unresponsive).toBe(0);
});

test("sends no ping after it is disposed", () => {
  pass(5000);
  heartbeat[Symbol.dispose]();
  pass(600_000);
  expect([pings, unresponsive]).toEqual([1, 0]);
});
