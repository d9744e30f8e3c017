import { expect, test } from "bun:test";
import {
  ceilToStep,
  dayMs,
  floorToStep,
  hourMs,
  minuteMs,
  parseSeoulMinute,
  seoulDay,
  seoulMinute,
  seoulTimestamp,
} from "../../../console/src/lib/seoul-time.ts";

const at = Date.parse("2026-11-20T23:05:07.089+09:00");
const justBeforeMidnight = Date.parse("2026-12-31T14:59:59.999Z");

test("an instant is formatted in Seoul time", () => {
  expect(seoulTimestamp(at)).toBe("2026-11-20T23:05:07.089+09:00");
  expect([seoulDay(at), seoulMinute(at)]).toEqual(["2026-11-20", "2026-11-20T23:05"]);
});

test("a day starts at midnight in Seoul", () => {
  expect(seoulDay(justBeforeMidnight)).toBe("2026-12-31");
  expect(seoulDay(justBeforeMidnight + 1)).toBe("2027-01-01");
});

test("a minute in a URL is parsed back to the same instant", () => {
  expect(parseSeoulMinute(seoulMinute(at))).toBe(Math.floor(at / minuteMs) * minuteMs);
});

test.each(["", "2026-11-20", "2026-13-01T00:00", "2026-11-20T23:05:07", "undefined", "2026-11-20T23:05Z"])(
  "%p is not a minute",
  (text) => expect(parseSeoulMinute(text)).toBeUndefined(),
);

test("day buckets start at midnight in Seoul, hour buckets at the full hour", () => {
  expect(seoulMinute(floorToStep(at, dayMs))).toBe("2026-11-20T00:00");
  expect(seoulMinute(ceilToStep(at, dayMs))).toBe("2026-11-21T00:00");
  expect(seoulMinute(floorToStep(at, hourMs))).toBe("2026-11-20T23:00");
  const start = floorToStep(at, dayMs);
  expect([floorToStep(start, dayMs), ceilToStep(start, dayMs)]).toEqual([start, start]);
});
