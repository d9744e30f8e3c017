import { createMemo } from "solid-js";
import { createDrawnData } from "./drawn-data.ts";
import { type EnergyPerTokens, energyPerTokens, outputByBucket, outputSteps, powerSteps } from "./energy.ts";
import { type PowerHistoryData, usePowerHistoryQuery } from "./queries.ts";
import { dayMs, minuteMs } from "./seoul-time.ts";
import { now } from "./server-clock.ts";
import { chosenSpan, minuteDays, presetOptions, sameQuery, type TimeSpan } from "./time-range.ts";
import { everyKey } from "./usage-chart.ts";
import { type TimeRangeState, useTimeRange } from "./use-time-range.ts";
import { type ChartSelection, type UsageBuckets, useUsageBuckets } from "./use-usage-buckets.ts";

export interface EnergyState extends TimeRangeState {
  usage: UsageBuckets;
  power: {
    query: ReturnType<typeof usePowerHistoryQuery>;
    bucketMinutes: () => number;
    /** When the data were fetched, server time; undefined without data. */
    fetchedAt: () => number | undefined;
    isLoading: () => boolean;
  };
  /** Over the whole span; undefined while it loads. */
  total: () => EnergyPerTokens | undefined;
  totalIn: (span: TimeSpan) => EnergyPerTokens;
  /** Watts; 0 without a reading. */
  peakPower: () => number;
  powerIn: (stepMs: number) => Float64Array;
  outputIn: (stepMs: number) => Float64Array;
}

/** Power and output tokens over the time range in the URL. */
export function useEnergy(): EnergyState {
  const timeRangeState = useTimeRange("24h", presetOptions);
  const { chosen } = timeRangeState;
  const selection: ChartSelection = { ...everyKey, metric: "output", top: 0, list: 0 };
  const usage = useUsageBuckets(chosen, () => selection, minuteDays);
  const { span } = usage;
  // Each power point counts its bucket at its maximum, so finer buckets give a closer bound.
  const days = createMemo(() => Math.max(1, Math.ceil((now() - chosenSpan(chosen(), now()).from) / dayMs)));
  const finestMinutes = (): number => (days() <= 7 || chosen().zoom !== undefined ? 1 : 5);
  const requested = createMemo(() => ({ days: days(), bucketMinutes: finestMinutes() }), undefined, {
    equals: sameQuery,
  });
  const query = usePowerHistoryQuery(requested);
  const drawn = createDrawnData(() => query.data, chosen, requested);
  const data = (): PowerHistoryData | undefined => drawn()?.data;
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
  const watts = (): ReadonlyMap<number, number> => data()?.watts ?? new Map();
  const totalIn = (within: TimeSpan): EnergyPerTokens =>
    energyPerTokens(
      { watts: watts(), bucketMinutes: power.bucketMinutes() },
      { byBucket: output(), bucketMinutes: usage.bucketMinutes() },
      within,
    );
  // While only one of the two shows a longer range, their ratio would be wrong.
  const powerCoversSpan = (): boolean => {
    const shown = data();
    return (
      shown !== undefined && shown.fetchedAt - shown.days * dayMs <= span().from + usage.bucketMinutes() * minuteMs
    );
  };
  const total = createMemo(() => (usage.chart() !== undefined && powerCoversSpan() ? totalIn(span()) : undefined));
  const powerIn = (stepMs: number): Float64Array => powerSteps(watts(), span(), stepMs);
  return {
    ...timeRangeState,
    usage,
    power,
    total,
    totalIn,
    peakPower: () =>
      powerIn(power.bucketMinutes() * minuteMs).reduce((most, value) => (value > most ? value : most), 0),
    powerIn,
    outputIn: (stepMs) => outputSteps(output(), span(), stepMs),
  };
}
