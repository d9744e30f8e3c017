import { afterEach, beforeEach, expect, jest, test } from "bun:test";
import { createReadTimeouts } from "../../../src/proxy/upstream/read-timeout.ts";

let now = 0;
beforeEach(() => {
  now = 0;
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

function pass(ms: number): void {
  now += ms;
  jest.advanceTimersByTime(ms);
}

test("a wait that lasts its time passes once, whatever other waits are due later or were due earlier", () => {
  const start = createReadTimeouts(() => now);
  const passed: string[] = [];
  const begin = (name: string, timeoutMs: number) => {
    const deadline = start(timeoutMs, () => passed.push(name));
    deadline.beginWait();
    return deadline;
  };
  begin("long", 1000);
  begin("short", 100);
  begin("middle", 500).endWait();
  const cleared = begin("cleared", 50);
  cleared.clear();
  pass(99);
  expect(passed).toEqual([]);
  pass(1);
  expect(passed).toEqual(["short"]);
  pass(899);
  expect(passed).toEqual(["short"]);
  pass(1);
  expect(passed).toEqual(["short", "long"]);
  pass(10_000);
  expect(passed).toEqual(["short", "long"]);
});

test("every wait has the whole time, and what lies between two waits does not count", () => {
  const start = createReadTimeouts(() => now);
  let passed = 0;
  const deadline = start(100, () => passed++);
  for (let gap = 0; gap < 5; gap++) {
    deadline.beginWait();
    pass(90);
    deadline.endWait();
    pass(1000);
  }
  expect(passed).toBe(0);
  deadline.beginWait();
  pass(100);
  expect(passed).toBe(1);
});

test("a deadline that passes may begin another", () => {
  const start = createReadTimeouts(() => now);
  const passed: string[] = [];
  const first = start(100, () => {
    passed.push("first");
    start(50, () => passed.push("second")).beginWait();
  });
  first.beginWait();
  pass(100);
  pass(50);
  expect(passed).toEqual(["first", "second"]);
});
