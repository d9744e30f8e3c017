import { describe, expect, test } from "bun:test";
import { dayMs, minuteMs, parseSeoulMinute } from "../../../console/src/data/seoul-time.ts";
import {
  barStep,
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

/** As in a window 1280 pixels wide: room for 300 bars. */
const plotWidthPx = 900;

describe("a query", () => {
  test.each(Object.keys(rangePresets) as RangePreset[])("for %s requests as many buckets as are drawn", (preset) => {
    for (const widthPx of [200, 280, 900, 1700]) {
      const { bucketMinutes } = bucketQuery({ preset, zoom: undefined }, now, 500, widthPx);
      const span = visibleSpan({ preset, zoom: undefined }, now, bucketMinutes);
      expect([widthPx, barStep(span, bucketMinutes * minuteMs, widthPx)]).toEqual([widthPx, bucketMinutes * minuteMs]);
    }
  });

  test("for a wider chart requests finer buckets", () => {
    const at = (widthPx: number) => bucketQuery({ preset: "24h", zoom: undefined }, now, 5, widthPx);
    expect([280, 900, 1700].map((widthPx) => at(widthPx).bucketMinutes)).toEqual([20, 5, 3]);
  });

  test("for a zoom requests finer buckets, back to its start", () => {
    const zoom = { from: minute("2026-11-19T10:00"), to: minute("2026-11-19T12:00") };
    expect(bucketQuery({ preset: "7d", zoom }, now, 5, plotWidthPx)).toEqual({ days: 3, bucketMinutes: 1 });
  });

  test("for a distant zoom with many keys limits the number of points", () => {
    const from = now - 29 * dayMs;
    const zoom = { from, to: from + 3_600_000 };
    const { days, bucketMinutes } = bucketQuery({ preset: "30d", zoom }, now, 50, plotWidthPx);
    expect(days).toBe(29);
    expect((days * 1440 * 50) / bucketMinutes).toBeLessThanOrEqual(200_000);
    expect(bucketMinutes).toBeLessThan(60);
  });

  test("for a zoom of a thousand years requests what the API has", () => {
    const zoom = { from: minute("1500-01-01T00:00"), to: minute("2999-01-01T00:00") };
    const timeRange = { preset: "24h", zoom } as const;
    const query = bucketQuery(timeRange, now, 500, plotWidthPx);
    expect(query).toEqual({ days: 30, bucketMinutes: 180 });
    const span = visibleSpan(timeRange, now, query.bucketMinutes);
    expect(span.to).toBe(minute("2026-11-21T15:00"));
    expect((span.to - span.from) / dayMs).toBeLessThan(30.2);
  });

  test("for a zoom into the future is the preset's", () => {
    const zoom = { from: now + dayMs, to: now + 2 * dayMs };
    const preset = bucketQuery({ preset: "6h", zoom: undefined }, now, 5, plotWidthPx);
    expect(bucketQuery({ preset: "6h", zoom }, now, 5, plotWidthPx)).toEqual(preset);
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
