import { describe, expect, test } from "bun:test";
import { dayMs, minuteMs, parseSeoulMinute } from "../../../console/src/lib/seoul-time.ts";
import {
  barStep,
  bucketMinutesFor,
  calendarOptions,
  chosenSpan,
  maxDays,
  presetOptions,
  type RangePreset,
  readTimeRange,
  rollingOptions,
  spanBefore,
  type TimeSpan,
  wholeBuckets,
  zoomParameters,
} from "../../../console/src/lib/time-range.ts";

const now = Date.parse("2026-11-21T13:05:30+09:00");
const minute = (text: string): number => parseSeoulMinute(text) ?? Number.NaN;

describe("a URL", () => {
  test("is parsed back to the zoom that wrote it", () => {
    const zoom = { from: minute("2026-11-21T10:00"), to: minute("2026-11-21T11:30") };
    expect(readTimeRange({ range: "7d", ...zoomParameters(zoom) }, "24h")).toEqual({ preset: "7d", zoom });
  });

  test.each([
    ["without parameters", {}],
    ["with an unknown range", { range: "2y" }],
    ["with an inherited property name as its range", { range: "constructor" }],
    ["with two ranges", { range: ["7d", "30d"] }],
    ["with a zoom that ends before it starts", { from: "2026-11-21T11:30", to: "2026-11-21T10:00" }],
    ["with half a zoom", { from: "2026-11-21T10:00" }],
    ["with words for times", { from: "yesterday", to: "today" }],
  ])("%s gives the default range", (_, parameters) => {
    expect(readTimeRange(parameters, "24h")).toEqual({ preset: "24h", zoom: undefined });
  });
});

test("a preset that a page does not have gives the default range", () => {
  expect(readTimeRange({ range: "365d" }, "24h").preset).toBe("365d");
  expect(readTimeRange({ range: "365d" }, "24h", presetOptions).preset).toBe("24h");
  expect(readTimeRange({ range: "last-month" }, "24h", presetOptions).preset).toBe("24h");
});

/** As in a window 1280 pixels wide: room for 300 bars. */
const plotWidthPx = 900;

const chosen = (preset: RangePreset, zoom?: TimeSpan, days = maxDays): TimeSpan =>
  chosenSpan({ preset, zoom }, now, days);

describe("a chart", () => {
  test.each([...rollingOptions, ...calendarOptions])("of $value has as many buckets as it draws bars", ({ value }) => {
    for (const widthPx of [200, 280, 900, 1700]) {
      const bucketMinutes = bucketMinutesFor(chosen(value), now, widthPx);
      const span = wholeBuckets(chosen(value), now, bucketMinutes);
      if (bucketMinutes < 1440) expect(barStep(span, bucketMinutes * minuteMs, widthPx)).toBe(bucketMinutes * minuteMs);
    }
  });

  test("that is wider has finer buckets", () => {
    const at = (widthPx: number): number => bucketMinutesFor(chosen("24h"), now, widthPx);
    expect([280, 900, 1700].map(at)).toEqual([20, 5, 3]);
  });

  test("of a zoom has finer buckets, of an hour or more where no minutes are kept", () => {
    const recent = { from: minute("2026-11-19T10:00"), to: minute("2026-11-19T12:00") };
    expect(bucketMinutesFor(chosen("7d", recent), now, plotWidthPx)).toBe(1);
    const old = { from: minute("2026-08-19T10:00"), to: minute("2026-08-19T12:00") };
    expect(bucketMinutesFor(chosen("7d", old), now, plotWidthPx)).toBe(60);
  });
});

describe("a zoom", () => {
  test("of a thousand years is what is kept, in whole days", () => {
    const zoom = { from: minute("1500-01-01T00:00"), to: minute("2999-01-01T00:00") };
    expect(chosen("24h", zoom)).toEqual({ from: minute("2025-11-21T00:00"), to: now });
    expect(chosen("24h", zoom, 30)).toEqual({ from: now - 30 * dayMs, to: now });
  });

  test.each([
    ["into the future", { from: now + dayMs, to: now + 2 * dayMs }],
    ["before all that is kept", { from: minute("2020-01-01T00:00"), to: minute("2020-02-01T00:00") }],
  ])("%s is the preset's range", (_, zoom) => {
    expect(chosen("6h", zoom)).toEqual(chosen("6h"));
  });
});

const spanOf = (from: string, to: string): TimeSpan => ({ from: minute(from), to: minute(to) });

test("days and months are those of Seoul", () => {
  expect(chosen("today")).toEqual({ from: minute("2026-11-21T00:00"), to: now });
  expect(chosen("yesterday")).toEqual(spanOf("2026-11-20T00:00", "2026-11-21T00:00"));
  expect(chosen("month")).toEqual({ from: minute("2026-11-01T00:00"), to: now });
  expect(chosen("last-month")).toEqual(spanOf("2026-10-01T00:00", "2026-11-01T00:00"));
  const newYear = Date.parse("2026-12-31T23:30:00Z");
  expect(chosenSpan({ preset: "last-month", zoom: undefined }, newYear)).toEqual(
    spanOf("2026-12-01T00:00", "2027-01-01T00:00"),
  );
});

test.each<[RangePreset, string]>([
  ["7d", "2026-11-15T00:00"],
  ["30d", "2026-10-23T00:00"],
  ["90d", "2026-08-24T00:00"],
  ["365d", "2025-11-22T00:00"],
])("%s are as many days with today, as in the tables", (preset, from) => {
  expect(chosen(preset)).toEqual({ from: minute(from), to: now });
});

describe("the period before", () => {
  const before = (
    preset: RangePreset,
    span: TimeSpan,
    { zoom = undefined as TimeSpan | undefined, minutes = 60 } = {},
  ) => spanBefore({ preset, zoom }, span, { now, bucketMinutes: minutes });

  test("is as long and right before", () => {
    const day = spanOf("2026-11-20T13:05", "2026-11-21T13:10");
    expect(before("24h", day, { minutes: 5 })).toEqual(spanOf("2026-11-19T13:00", "2026-11-20T13:05"));
    const zoom = spanOf("2026-11-01T00:00", "2026-11-03T00:00");
    expect(before("month", zoom, { zoom })).toEqual(spanOf("2026-10-30T00:00", "2026-11-01T00:00"));
  });

  test("of some days is as many days before them, of which the last is not over either", () => {
    expect(before("7d", spanOf("2026-11-15T00:00", "2026-11-21T14:00"))).toEqual(
      spanOf("2026-11-08T00:00", "2026-11-14T14:00"),
    );
  });

  test("of a day or a month is the same part of the one before", () => {
    expect(before("today", spanOf("2026-11-21T00:00", "2026-11-21T14:00"))).toEqual(
      spanOf("2026-11-20T00:00", "2026-11-20T14:00"),
    );
    expect(before("yesterday", spanOf("2026-11-20T00:00", "2026-11-21T00:00"))).toEqual(
      spanOf("2026-11-19T00:00", "2026-11-20T00:00"),
    );
    expect(before("month", spanOf("2026-11-01T00:00", "2026-11-21T15:00"))).toEqual(
      spanOf("2026-10-01T00:00", "2026-10-21T15:00"),
    );
    expect(before("month", spanOf("2026-03-01T00:00", "2026-03-31T00:00"))).toEqual(
      spanOf("2026-02-01T00:00", "2026-03-01T00:00"),
    );
    expect(before("last-month", spanOf("2026-10-01T00:00", "2026-11-01T00:00"))).toEqual(
      spanOf("2026-09-01T00:00", "2026-10-01T00:00"),
    );
  });

  test("is undefined if it is not kept, or not in buckets so narrow", () => {
    expect(before("365d", spanOf("2025-11-21T00:00", "2026-11-22T00:00"))).toBeUndefined();
    const old = spanOf("2026-11-01T00:00", "2026-11-15T00:00");
    expect(before("7d", old, { zoom: old, minutes: 60 })).toBeDefined();
    expect(before("7d", old, { zoom: old, minutes: 30 })).toBeUndefined();
  });
});

test("the buckets of a chart are whole, including the current one", () => {
  expect(wholeBuckets(chosen("1h"), now, 1)).toEqual(spanOf("2026-11-21T12:05", "2026-11-21T13:06"));
  const zoom = spanOf("2026-11-21T10:07", "2026-11-21T10:31");
  expect(wholeBuckets(zoom, now, 15)).toEqual(spanOf("2026-11-21T10:00", "2026-11-21T10:45"));
});
