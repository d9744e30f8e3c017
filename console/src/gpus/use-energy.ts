import { createMemo } from "solid-js";
import { createDrawnData } from "../lib/drawn-data.ts";
import {
  type EnergyPerTokens,
  energyCost,
  energyPerTokens,
  outputByBucket,
  outputSteps,
  type PowerHistory,
  powerSteps,
} from "./energy.ts";
import { usePricesQuery } from "../insight-queries.ts";
import type { Cost } from "../lib/money.ts";
import { usePowerHistoryQuery } from "../queries.ts";
import { dayMs, minuteMs } from "../lib/seoul-time.ts";
import { now } from "../lib/server-clock.ts";
import { chosenSpan, daysBack, minuteDays, presetOptions, sameQuery, type TimeSpan } from "../lib/time-range.ts";
import { everyKey } from "../usage/usage-buckets.ts";
import { type TimeRangeState, useTimeRange } from "../lib/use-time-range.ts";
import { type ChartSelection, type UsageBuckets, useUsageBuckets } from "../usage/use-usage-buckets.ts";

export interface EnergyState extends TimeRangeState {
  usage: UsageBuckets;
  power: {
    query: ReturnType<typeof usePowerHistoryQuery>;
    bucketMinutes: () => number;
    /** When the data were fetched, server time; undefined without data. */
    fetchedAt: () => number | undefined;
    isLoading: () => boolean;
  };
  /** Over the whole span; undefined while power and tokens do not show the same range. */
  total: () => EnergyPerTokens | undefined;
  totalIn: (span: TimeSpan) => EnergyPerTokens | undefined;
  /** Undefined while power or prices load; without a price, its cost is null. */
  costIn: (span: TimeSpan) => Cost | undefined;
  currency: () => string;
  arePricesMissing: () => boolean;
  /** Watts; 0 without a reading. */
  peakPower: () => number;
  powerIn: (stepMs: number) => Float64Array;
  outputIn: (stepMs: number) => Float64Array;
}

/** Power and output tokens over the time range in the URL, in the same buckets. */
export function useEnergy(): EnergyState {
  const timeRangeState = useTimeRange("24h", presetOptions);
  const { chosen } = timeRangeState;
  const selection: ChartSelection = { ...everyKey, metric: "output", top: 0, list: 0 };
  const usage = useUsageBuckets(chosen, () => selection, minuteDays);
  const { span } = usage;
  // They depend on the width of the chart, and are wider than requested where minute counts are no longer kept.
  const bucketMinutes = (): number => (usage.isCurrent() ? usage.bucketMinutes() : usage.requested().bucketMinutes);
  const requested = createMemo(
    () => ({ days: daysBack(chosenSpan(chosen(), now()), now()), bucketMinutes: bucketMinutes() }),
    undefined,
    { equals: sameQuery },
  );
  const prices = usePricesQuery();
  const query = usePowerHistoryQuery(requested, usage.isMeasured);
  const drawn = createDrawnData(() => query.data, chosen, requested);
  const data = (): NonNullable<typeof query.data> | undefined => drawn()?.data;
  const isCurrent = (): boolean => {
    const shown = data();
    return shown !== undefined && sameQuery(shown, requested());
  };
  const power = {
    query,
    bucketMinutes: () => data()?.bucketMinutes ?? requested().bucketMinutes,
    fetchedAt: () => data()?.fetchedAt,
    isLoading: () => !isCurrent() && !query.isError,
  };

  const output = createMemo(() => outputByBucket(usage.chart()));
  const history = (): PowerHistory => data()?.power ?? new Map();
  const hasSameBuckets = (): boolean => {
    const shown = data();
    if (shown === undefined || shown.bucketMinutes !== usage.bucketMinutes()) return false;
    return shown.fetchedAt - shown.days * dayMs <= span().from + usage.bucketMinutes() * minuteMs;
  };
  const totalIn = (within: TimeSpan): EnergyPerTokens | undefined =>
    usage.chart() !== undefined && hasSameBuckets() ? energyPerTokens(history(), output(), within) : undefined;
  const total = createMemo(() => totalIn(span()));
  const powerIn = (stepMs: number): Float64Array => powerSteps(history(), span(), stepMs);
  return {
    ...timeRangeState,
    usage,
    power,
    total,
    totalIn,
    costIn: (within) =>
      prices.data && hasSameBuckets() ? energyCost(history(), within, prices.data.energy) : undefined,
    currency: () => prices.data?.currency ?? "",
    arePricesMissing: () => prices.data === undefined && prices.isError,
    peakPower: () =>
      powerIn(power.bucketMinutes() * minuteMs).reduce((most, value) => (value > most ? value : most), 0),
    powerIn,
    outputIn: (stepMs) => outputSteps(output(), span(), stepMs),
  };
}
