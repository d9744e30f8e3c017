import { describe, expect, test } from "bun:test";
import { startKeepaliveTimer } from "../../../src/proxy/response/keepalive-timer.ts";

describe("silence timer", () => {
  test("calls back after each silence, again and again", async () => {
    const started = performance.now();
    const calledAfterMs: number[] = [];
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = startKeepaliveTimer(20, () => {
      calledAfterMs.push(performance.now() - started);
      if (calledAfterMs.length === 3) resolve();
    });
    await promise;
    timer.stop();
    for (const [index, ms] of calledAfterMs.entries()) expect(ms).toBeGreaterThanOrEqual(20 * (index + 1) - 1);
  });

  test("waits for a whole silence behind the last restart", async () => {
    const { promise, resolve } = Promise.withResolvers<number>();
    const timer = startKeepaliveTimer(60, () => resolve(performance.now()));
    let restartedAt = 0;
    for (let round = 0; round < 10; round++) {
      await Bun.sleep(10);
      timer.restart();
      restartedAt = performance.now();
    }
    expect((await promise) - restartedAt).toBeGreaterThanOrEqual(59);
    timer.stop();
  });

  test("is silent itself once it is stopped, also from inside the call", async () => {
    let calls = 0;
    const timer = startKeepaliveTimer(1, () => {
      calls++;
      timer.stop();
    });
    await Bun.sleep(30);
    expect(calls).toBe(1);
  });
});
