import { expect, test } from "bun:test";
import { createFaults } from "../../src/demo/faults.ts";
import { parseScript } from "../../src/simulator/script.ts";

test("one or two requests an hour fail, in different ways, the first one soon", () => {
  let now = Date.parse("2026-03-04T05:06:07Z");
  const nextFault = createFaults(() => now);
  const faults: { atMinute: number; script: string }[] = [];
  for (let second = 0; second < 6 * 3600; second++, now += 1000) {
    const script = nextFault();
    if (script !== undefined) faults.push({ atMinute: Math.floor(second / 60), script });
  }
  expect(faults[0]?.atMinute).toBe(2);
  for (let hour = 0; hour < 6; hour++) {
    expect(faults.filter(({ atMinute }) => Math.floor(atMinute / 60) === hour).length).toBeWithin(1, 3);
  }
  expect(new Set(faults.map(({ script }) => script)).size).toBe(3);
  for (const { script } of faults) expect(parseScript(script)).not.toEqual({});
});
