import { afterAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import type { Fetched } from "../../../console/src/lib/series.ts";
import { createTempFolder } from "../../support/temp-folder.ts";

const folder = createTempFolder();
afterAll(() => folder.remove());

const { createRoot, createSeries, createSignal, createStore } = await importForBrowser();

async function importForBrowser(): Promise<typeof import("./series-in-browser.ts")> {
  const entry = join(import.meta.dir, "series-in-browser.ts");
  const { outputs } = await Bun.build({ entrypoints: [entry], target: "browser", outdir: folder.path });
  return import(outputs[0]?.path ?? "");
}

interface Request {
  hours: number;
  bucketMinutes: number;
}

interface Data extends Fetched<Request> {
  value: string;
}

interface Answer {
  data?: Data | undefined;
  isError?: boolean;
}

type Series = ReturnType<typeof createSeries<number, Request, Data>>;

/** Shows some of the last hours; the test answers in place of the server. */
function seriesUnderTest(plotWidthPx = 300) {
  return createRoot((dispose) => {
    const [range, setRange] = createSignal(24);
    const [width, setWidth] = createSignal(plotWidthPx);
    const [query, setQuery] = createStore<Answer>({ data: undefined, isError: false });
    let isMeasured = (): boolean => false;
    const series = createSeries({
      range,
      width,
      request: (hours: number): Request => ({ hours, bucketMinutes: width() > 200 ? 1 : 5 }),
      fetch: (_, measured) => {
        isMeasured = measured;
        return query as unknown as Series["query"];
      },
      covers: (data: Data, hours: number) => hours < data.request.hours,
    });
    const respond = (value: string, request = series.requested()): void =>
      setQuery({ data: { value, request, fetchedAt: 1000 }, isError: false });
    // As a query does: what it had for another request is gone.
    const fail = (): void => setQuery({ data: undefined, isError: true });
    return { dispose, series, setRange, setWidth, respond, fail, isMeasured: () => isMeasured() };
  });
}

const shown = ({ data, range, isCurrent, isLoading }: Series) => ({
  value: data()?.value,
  range: range(),
  isCurrent: isCurrent(),
  isLoading: isLoading(),
});

describe("a series", () => {
  test("has no data before the first response", () => {
    const { series, dispose } = seriesUnderTest();
    expect(shown(series)).toEqual({ value: undefined, range: undefined, isCurrent: false, isLoading: true });
    expect(series.fetchedAt()).toBeUndefined();
    dispose();
  });

  test("loads once the chart has a width", () => {
    const { isMeasured, setWidth, dispose } = seriesUnderTest(0);
    expect(isMeasured()).toBe(false);
    setWidth(300);
    expect(isMeasured()).toBe(true);
    dispose();
  });

  test("shows a response in the range that was asked for", () => {
    const { series, respond, dispose } = seriesUnderTest();
    respond("a day");
    expect(shown(series)).toEqual({ value: "a day", range: 24, isCurrent: true, isLoading: false });
    expect(series.fetchedAt()).toBe(1000);
    dispose();
  });

  test("keeps the data before, in their own range, while a longer range loads", () => {
    const { series, setRange, respond, dispose } = seriesUnderTest();
    respond("a day");
    setRange(48);
    expect(shown(series)).toEqual({ value: "a day", range: 24, isCurrent: false, isLoading: true });
    respond("two days");
    expect(shown(series)).toEqual({ value: "two days", range: 48, isCurrent: true, isLoading: false });
    dispose();
  });

  test("keeps the data before, in their own range, after a longer range failed", () => {
    const { series, setRange, respond, fail, dispose } = seriesUnderTest();
    respond("a day");
    setRange(48);
    fail();
    expect(shown(series)).toEqual({ value: "a day", range: 24, isCurrent: false, isLoading: false });
    dispose();
  });

  test("draws a zoom in the data before, until its own arrive", () => {
    const { series, setRange, respond, dispose } = seriesUnderTest();
    respond("a day");
    setRange(6);
    expect(shown(series)).toEqual({ value: "a day", range: 6, isCurrent: false, isLoading: true });
    respond("six hours");
    expect(shown(series)).toEqual({ value: "six hours", range: 6, isCurrent: true, isLoading: false });
    dispose();
  });

  test("requests other buckets for another width, and shows those before meanwhile", () => {
    const { series, setWidth, respond, dispose } = seriesUnderTest();
    respond("narrow buckets");
    setWidth(100);
    expect(series.requested()).toEqual({ hours: 24, bucketMinutes: 5 });
    expect(shown(series)).toEqual({ value: "narrow buckets", range: 24, isCurrent: false, isLoading: true });
    dispose();
  });

  test("keeps its request while that says the same", () => {
    const { series, setWidth, dispose } = seriesUnderTest();
    const before = series.requested();
    setWidth(301);
    expect(series.requested()).toBe(before);
    dispose();
  });
});
