import { afterAll, beforeEach, expect, setSystemTime, test } from "bun:test";
import { hourMs, minuteMs } from "../../../console/src/lib/seoul-time.ts";
import {
  clockLabel,
  dateTimeLabel,
  dayLabel,
  spanLabel,
  zonedClockLabel,
} from "../../../console/src/lib/time-labels.ts";
import { chooseTimeZone } from "../../../console/src/lib/time-zone.ts";

const at = Date.parse("2026-11-20T23:05:07.089+09:00");

beforeEach(() => {
  setSystemTime(at);
  chooseTimeZone("kst");
});
afterAll(() => {
  setSystemTime();
  chooseTimeZone("kst");
});

test("an instant is in Seoul time by default, and in the chosen zone", () => {
  expect([clockLabel(at), zonedClockLabel(at)]).toEqual(["23:05", "23:05 KST"]);
  expect([dayLabel(at), dateTimeLabel(at)]).toEqual(["20 Nov", "20 Nov 2026, 23:05:07 KST"]);
  chooseTimeZone("utc");
  expect([zonedClockLabel(at), dateTimeLabel(at)]).toEqual(["14:05 UTC", "20 Nov 2026, 14:05:07 UTC"]);
});

test("a span names its zone, and its second day only if it crosses midnight", () => {
  expect(spanLabel(at, at + 30 * minuteMs)).toBe("20 Nov, 23:05 – 23:35 KST");
  expect(spanLabel(at, at + hourMs)).toBe("20 Nov, 23:05 – 21 Nov, 00:05 KST");
  chooseTimeZone("utc");
  expect(spanLabel(at, at + hourMs)).toBe("20 Nov, 14:05 – 15:05 UTC");
});

test("a year that is not this year's is named", () => {
  const [from, to] = ["2025-12-31T23:00+09:00", "2026-01-01T01:00+09:00"].map((text) => Date.parse(text));
  expect(spanLabel(from ?? 0, to ?? 0)).toBe("31 Dec 2025, 23:00 – 1 Jan, 01:00 KST");
  expect(dayLabel(from ?? 0)).toBe("31 Dec 2025");
  // In UTC, New Year's Day has not begun at either.
  chooseTimeZone("utc");
  expect(spanLabel(from ?? 0, to ?? 0)).toBe("31 Dec 2025, 14:00 – 16:00 UTC");
});
