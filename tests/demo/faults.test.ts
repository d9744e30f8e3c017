import { expect, test } from "bun:test";
import { createFaults } from "../../src/demo/faults.ts";

test("one or two requests an hour fail, in different ways, the first one soon", () => {
  let now = Date.parse("2026-03-04T05:06:07Z");
  const nextFault = createFaults(() => now);
  const faults: { atMinute: number; fault: string }[] = [];
  for (let second = 0; second < 6 * 3600; second++, now += 1000) {
    const fault = nextFault();
    if (fault !== undefined) faults.push({ atMinute: Math.floor(second / 60), fault });
  }
  expect(faults[0]?.atMinute).toBe(2);
  for (let hour = 0; hour < 6; hour++) {
    expect(faults.filter(({ atMinute }) => Math.floor(atMinute / 60) === hour).length).toBeWithin(1, 3);
  }
  expect(new Set(faults.map(({ fault }) => fault)).size).toBe(3);
});
