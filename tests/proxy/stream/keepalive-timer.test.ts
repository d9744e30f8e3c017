import { afterEach, beforeEach, describe, expect, jest, test } from "bun:test";
import { startKeepaliveTimer } from "../../../src/proxy/stream/transform-stream.ts";

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

describe("the keepalive timer", () => {
  test("calls back after each silence, again and again", () => {
    let calls = 0;
    const timer = startKeepaliveTimer(20, () => calls++);
    const seen = [19, 1, 19, 1, 20].map((ms) => {
      jest.advanceTimersByTime(ms);
      return calls;
    });
    timer.stop();
    expect(seen).toEqual([0, 1, 1, 2, 3]);
  });

  test("waits for a whole silence after the last restart", () => {
    let calls = 0;
    const timer = startKeepaliveTimer(60, () => calls++);
    for (let round = 0; round < 10; round++) {
      jest.advanceTimersByTime(50);
      timer.restart();
    }
    jest.advanceTimersByTime(59);
    expect(calls).toBe(0);
    jest.advanceTimersByTime(1);
    expect(calls).toBe(1);
    timer.stop();
  });

  test("stays silent once it is stopped, also from inside the call", () => {
    let calls = 0;
    const timer = startKeepaliveTimer(1, () => {
      calls++;
      timer.stop();
    });
    jest.advanceTimersByTime(1000);
    expect(calls).toBe(1);
    expect(jest.getTimerCount()).toBe(0);
  });
});
