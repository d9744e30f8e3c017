import { createMemo } from "solid-js";
import type { Cost } from "../lib/money.ts";
import { dayMs, minuteMs } from "../lib/seoul-time.ts";
import { createSeries } from "../lib/series.ts";
import { now } from "../lib/server-clock.ts";
import { minuteDays, presetOptions, type TimeSpan } from "../lib/time-range.ts";
import { useTimeRange } from "../lib/use-time-range.ts";
import { usePricesQuery } from "../queries.ts";
import { allUsage } from "../usage/usage-filters.ts";
import { type UsageSelection, useUsageSeries } from "../usage/use-usage-series.ts";
import {
  energyCost,
  type EnergyPerTokens,
  energyPerTokens,
  outputByBucket,
  outputSteps,
  type PowerHistory,
  powerSteps,
} from "./energy.ts";
import { coversRange, daysBack, type HistoryRequest } from "./gpu-history.ts";
import { usePowerHistoryQuery } from "./queries.ts";

export type EnergyState = ReturnType<typeof useEnergy>;

/** Power and output tokens over the time range in the URL, in the same buckets. */
export function useEnergy() {
  const timeRangeState = useTimeRange("24h", presetOptions);
  const { chosen } = timeRangeState;
  const selection: UsageSelection = { filter: allUsage, by: "key", metric: "output", top: 0, list: 0 };
  const usage = useUsageSeries(chosen, () => selection, minuteDays);
  const { span } = usage;
  // They depend on the width of the chart, and are wider than requested where minute counts are no longer kept.
  const bucketMinutes = (): number => (usage.isCurrent() ? usage.bucketMinutes() : usage.requested().bucketMinutes);
  const days = createMemo(() => daysBack(chosen(), now()));
  const prices = usePricesQuery();
  const series = createSeries({
    range: chosen,
    width: usage.plotWidthPx,
    request: (): HistoryRequest => ({ days: days(), bucketMinutes: bucketMinutes() }),
    fetch: usePowerHistoryQuery,
    covers: coversRange,
  });
  const { data } = series;
  const powerMinutes = (): number => (data()?.request ?? series.requested()).bucketMinutes;

  const output = createMemo(() => outputByBucket(usage.data()));
  const history = (): PowerHistory => data()?.power ?? new Map();
  const hasSameBuckets = (): boolean => {
    const shown = data();
    if (shown === undefined || shown.request.bucketMinutes !== usage.bucketMinutes()) return false;
    return shown.fetchedAt - shown.request.days * dayMs <= span().from + usage.bucketMinutes() * minuteMs;
  };
  const totalIn = (within: TimeSpan): EnergyPerTokens | undefined =>
    usage.data() !== undefined && hasSameBuckets() ? energyPerTokens(history(), output(), within) : undefined;
  /** Over the whole span; undefined while power and tokens do not show the same range. */
  const total = createMemo(() => totalIn(span()));
  const powerIn = (stepMs: number): Float64Array => powerSteps(history(), span(), stepMs);
  return {
    ...timeRangeState,
    usage,
    power: { ...series, bucketMinutes: powerMinutes },
    total,
    totalIn,
    /** Undefined while power or prices load; without a price, its cost is null. */
    costIn: (within: TimeSpan): Cost | undefined =>
      prices.data && hasSameBuckets() ? energyCost(history(), within, prices.data.energy) : undefined,
    currency: () => prices.data?.currency ?? "",
    arePricesMissing: () => prices.data === undefined && prices.isError,
    /** Watts; 0 without a reading. */
    peakPower: () => powerIn(powerMinutes() * minuteMs).reduce((most, value) => (value > most ? value : most), 0),
    powerIn,
    outputIn: (stepMs: number) => outputSteps(output(), span(), stepMs),
  };
}
