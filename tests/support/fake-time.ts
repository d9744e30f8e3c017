import { afterEach, beforeEach, jest } from "bun:test";
import { passTicks } from "./event-loop.ts";

/** A clock that begins at 0 in each test, and timers that follow it. To be called in a file, or in the `describe` that it is for. */
export function useFakeTime() {
  let now = 0;
  beforeEach(() => {
    now = 0;
    jest.useFakeTimers();
  });
  afterEach(() => void jest.useRealTimers());
  return {
    now: () => now,
    /** Resolves when what the time has set off is done. */
    async pass(ms: number): Promise<void> {
      await passTicks();
      now += ms;
      jest.advanceTimersByTime(ms);
      await passTicks();
    },
  };
}
