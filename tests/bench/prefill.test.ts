import { expect, test } from "bun:test";
import { simulatePrefill } from "./routing/prefill.ts";

// Nothing in it depends on the speed of the machine.
test.each([1, 2])(
  "four long prompts at once cost others no more than one where a backend reads one at a time (seed %p)",
  (seed) => {
    const [one, off, on] = [
      simulatePrefill({ giants: 1, maxPrefillTokens: undefined }, seed),
      simulatePrefill({ giants: 4, maxPrefillTokens: undefined }, seed),
      simulatePrefill({ giants: 4, maxPrefillTokens: 16_000 }, seed),
    ];
    expect(on.tokenP99).toBeLessThanOrEqual(1.2 * one.tokenP99);
    expect(on.chatP95).toBeLessThanOrEqual(1.5 * one.chatP95);
    expect(off.chatP95).toBeGreaterThan(3 * one.chatP95);
    expect(on.warmHeld).toBe(0);
    expect(on.giantsServed).toBe(off.giantsServed);
    expect(on.served).toBeGreaterThanOrEqual(0.95 * off.served);
  },
);
