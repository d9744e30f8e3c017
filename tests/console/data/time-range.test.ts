import { describe, expect, test } from "bun:test";
import { dayMs, minuteMs, parseSeoulMinute } from "../../../console/src/data/seoul-time.ts";
import {
  bucketQuery,
  type RangePreset,
  rangePresets,
  readTimeRange,
  visibleSpan,
  zoomParameters,
} from "../../../console/src/data/time-range.ts";

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

describe("a query", () => {
  test.each(Object.keys(rangePresets) as RangePreset[])("for %s requests at most 720 buckets", (preset) => {
    const { bucketMinutes } = bucketQuery({ preset, zoom: undefined }, now, 500);
    const { from, to } = visibleSpan({ preset, zoom: undefined }, now, bucketMinutes);
    expect((to - from) / minuteMs / bucketMinutes).toBeLessThanOrEqual(721);
  });

  test("for a zoom requests finer buckets, back to its start", () => {
    const zoom = { from: minute("2026-11-19T10:00"), to: minute("2026-11-19T12:00") };
    expect(bucketQuery({ preset: "7d", zoom }, now, 5)).toEqual({ days: 3, bucketMinutes: 1 });
  });

  test("for a distant zoom with many keys limits the number of points", () => {
    const from = now - 29 * dayMs;
    const { days, bucketMinutes } = bucketQuery({ preset: "30d", zoom: { from, to: from + 3_600_000 } }, now, 50);
    expect(days).toBe(29);
    expect((days * 1440 * 50) / bucketMinutes).toBeLessThanOrEqual(200_000);
    expect(bucketMinutes).toBeLessThan(60);
  });

  test("never requests coarser buckets than the preset or more days than the API has", () => {
    const zoom = { from: now - 90 * dayMs, to: now };
    expect(bucketQuery({ preset: "30d", zoom }, now, 500)).toEqual({ days: 30, bucketMinutes: 60 });
  });
});

test("the visible span has whole buckets, including the current one", () => {
  const span = visibleSpan({ preset: "1h", zoom: undefined }, now, 1);
  expect(span).toEqual({ from: minute("2026-11-21T12:05"), to: minute("2026-11-21T13:06") });
  const zoomed = visibleSpan(
    { preset: "7d", zoom: { from: minute("2026-11-21T10:07"), to: minute("2026-11-21T10:31") } },
    now,
    15,
  );
  expect(zoomed).toEqual({ from: minute("2026-11-21T10:00"), to: minute("2026-11-21T10:45") });
});
