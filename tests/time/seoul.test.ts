import { describe, expect, test } from "bun:test";
import {
  bucketFloor,
  dayBefore,
  dayFromNumber,
  dayNumberFrom,
  dayNumberOf,
  dayOf,
  listMonths,
  minuteOf,
  monthOf,
  splitByMonths,
  startOfDay,
  timestampOf,
} from "../../src/time/seoul.ts";

const at = (text: string): number => new Date(text).valueOf();

describe("a day in Seoul time", () => {
  test("starts at 15:00 UTC of the previous day", () => {
    expect(dayOf(at("2026-04-30T14:59:59.999Z"))).toBe("2026-04-30");
    expect(dayOf(at("2026-04-30T15:00:00.000Z"))).toBe("2026-05-01");
    expect(startOfDay("2026-05-01")).toBe(at("2026-04-30T15:00:00.000Z"));
  });

  test("counts back over a leap day and the end of a year", () => {
    expect(dayBefore("2024-03-01", 1)).toBe("2024-02-29");
    expect(dayBefore("2026-01-01", 1)).toBe("2025-12-31");
    expect(dayBefore("2026-05-01", 365)).toBe("2025-05-01");
  });

  test("is the same as a number and as a string", () => {
    const instant = at("2026-05-01T00:00:00.000+09:00");
    expect(dayFromNumber(dayNumberOf(instant))).toBe("2026-05-01");
    expect(dayNumberFrom("2026-05-01")).toBe(dayNumberOf(instant));
    expect(dayNumberOf(instant - 1)).toBe(dayNumberOf(instant) - 1);
  });
});

describe("a month in Seoul time", () => {
  const days = (text: string): string[] => Object.values(monthOf(at(text))).map(dayFromNumber);

  test.each([
    ["2026-04-30T14:59:59.999Z", "2026-04-01", "2026-05-01"],
    ["2026-04-30T15:00:00.000Z", "2026-05-01", "2026-06-01"],
    ["2024-02-29T12:00:00.000Z", "2024-02-01", "2024-03-01"],
    ["2026-12-31T14:59:59.999Z", "2026-12-01", "2027-01-01"],
    ["2026-12-31T15:00:00.000Z", "2027-01-01", "2027-02-01"],
  ])("%s lies between %s and %s", (instant, first, next) => {
    expect(days(instant)).toEqual([first, next]);
  });

  test.each([
    ["2026-03-01", "2026-04-01", ["month 2026-03-01 2026-04-01"]],
    [
      "2026-02-28",
      "2026-04-02",
      ["day 2026-04-01 2026-04-02", "month 2026-03-01 2026-04-01", "day 2026-02-28 2026-03-01"],
    ],
    ["2024-02-01", "2024-02-29", ["day 2024-02-01 2024-02-29"]],
    ["2026-03-02", "2026-04-30", ["day 2026-03-02 2026-04-30"]],
    ["2025-12-01", "2026-02-01", ["month 2025-12-01 2026-02-01"]],
    ["2026-03-05", "2026-03-05", []],
  ])("of the days from %s to %s, whole ones stand apart", (from, to, parts) => {
    const split = splitByMonths({ from: dayNumberFrom(from), to: dayNumberFrom(to) });
    expect(split.map((part) => `${part.unit} ${dayFromNumber(part.from)} ${dayFromNumber(part.to)}`)).toEqual(parts);
  });

  test("is listed by its first day", () => {
    const months = listMonths({ from: dayNumberFrom("2025-12-01"), to: dayNumberFrom("2026-03-01") });
    expect(months.map(dayFromNumber)).toEqual(["2025-12-01", "2026-01-01", "2026-02-01"]);
  });
});

describe("a bucket", () => {
  const floored = (text: string, minutes: number): string =>
    timestampOf(bucketFloor(minuteOf(at(text)), minutes) * 60_000);

  test("of a day starts at midnight in Seoul", () => {
    expect(floored("2026-05-01T23:59:59+09:00", 1440)).toBe("2026-05-01T00:00:00.000+09:00");
    expect(floored("2026-05-02T00:00:00+09:00", 1440)).toBe("2026-05-02T00:00:00.000+09:00");
  });

  test("that divides an hour starts at a multiple of its length", () => {
    expect(floored("2026-05-01T10:14:59+09:00", 5)).toBe("2026-05-01T10:10:00.000+09:00");
    expect(floored("2026-05-01T10:15:00+09:00", 5)).toBe("2026-05-01T10:15:00.000+09:00");
  });

  test("of any other length is counted from midnight of 1970-01-01 in Seoul", () => {
    const seoulMinutes = minuteOf(at("2026-05-01T10:15:00+09:00")) + 540;
    expect(floored("2026-05-01T10:15:00+09:00", 97)).toBe(
      timestampOf((seoulMinutes - (seoulMinutes % 97) - 540) * 60_000),
    );
  });
});

test("a timestamp contains milliseconds and the offset", () => {
  expect(timestampOf(at("2026-04-30T15:00:00.007Z"))).toBe("2026-05-01T00:00:00.007+09:00");
});

test.each(["UTC", "America/Los_Angeles", "Pacific/Kiritimati"])("is the same on a machine in %s", (zone) => {
  const source = `import { dayOf, startOfDay, timestampOf } from "./src/time/seoul.ts";
    console.log(dayOf(1777561200000), startOfDay("2026-05-01"), timestampOf(1777561200000));`;
  const { stdout } = Bun.spawnSync([process.execPath, "-e", source], {
    cwd: `${import.meta.dir}/../..`,
    env: { ...process.env, TZ: zone },
  });
  expect(stdout.toString().trim()).toBe("2026-05-01 1777561200000 2026-05-01T00:00:00.000+09:00");
});
