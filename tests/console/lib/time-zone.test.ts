import { afterEach, expect, test } from "bun:test";
import { chooseTimeZone, fieldTime, parseFieldTime } from "../../../console/src/lib/time-zone.ts";

const text = "2026-12-31T15:30:00.000Z";

afterEach(() => chooseTimeZone("kst"));

test.each([
  ["kst", "2027-01-01T00:30"],
  ["utc", "2026-12-31T15:30"],
] as const)("a field shows and takes a time in the chosen zone, %s", (zone, field) => {
  chooseTimeZone(zone);
  expect(fieldTime(text)).toBe(field);
  expect(parseFieldTime(field)).toBe(Date.parse(text));
});

test("a field shows and takes a local time, also across a change of its offset", () => {
  chooseTimeZone("local");
  for (const at of [Date.parse(text), Date.parse("2026-07-01T12:00Z")]) {
    expect(parseFieldTime(fieldTime(new Date(at).toISOString()))).toBe(at);
  }
});

test("a field without a time is empty", () => {
  expect([fieldTime(null), parseFieldTime(""), parseFieldTime("2026-12-31")]).toEqual(["", undefined, undefined]);
});
