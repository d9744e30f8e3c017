import { createMemo } from "solid-js";
import { type EnergyPerTokens, energyPerTokens, powerSteps } from "./energy.ts";
import { now } from "./server-clock.ts";
import { useTimeRange, type TimeRangeState } from "./use-time-range.ts";
import { useUsageHistoryQuery, usePowerHistoryQuery } from "./queries.ts";
import { minuteMs } from "./seoul-time.ts";
import { bucketQuery, sameQuery, sameSpan, type TimeSpan, visibleSpan } from "./time-range.ts";

export interface EnergyState extends TimeRangeState {
  queries: readonly [ReturnType<typeof useUsageHistoryQuery>, ReturnType<typeof usePowerHistoryQuery>];
  span: () => TimeSpan;
  usageBucketMinutes: () => number;
  powerBucketMinutes: () => number;
  isPowerLoading: () => boolean;
  isUsageLoading: () => boolean;
  /** Undefined while it loads. */
  energy: () => EnergyPerTokens | undefined;
  energyIn: (span: TimeSpan) => EnergyPerTokens;
  /** Watts; 0 where nothing was measured. */
  peakPower: () => number;
  powerIn: (stepMs: number) => Float64Array;
  outputIn: (stepMs: number) => Float64Array;
}

/** Power and output tokens over the span that the address asks for. */
export function useEnergy(): EnergyState {
  const timeRangeState = useTimeRange("24h");
  const { timeRange } = timeRangeState;
  let keyCount = 0;
  const usageQuery = createMemo(() => bucketQuery(timeRange(), now(), keyCount), undefined, { equals: sameQuery });
  // Each power point counts its bucket at its maximum: the finer the buckets, the closer the bound.
  const finest = (): number => (usageQuery().days <= 7 || timeRange().zoom !== undefined ? 1 : 5);
  const powerQuery = createMemo(() => ({ days: usageQuery().days, bucketMinutes: finest() }), undefined, {
    equals: sameQuery,
  });
  const usage = useUsageHistoryQuery(usageQuery);
  const power = usePowerHistoryQuery(powerQuery);

  const usageBucketMinutes = (): number => usage.data?.bucketMinutes ?? usageQuery().bucketMinutes;
  const powerBucketMinutes = (): number => power.data?.bucketMinutes ?? powerQuery().bucketMinutes;
  const span = createMemo(() => visibleSpan(timeRange(), usage.data?.at ?? now(), usageBucketMinutes()), undefined, {
    equals: sameSpan,
  });
  const outputByBucket = createMemo(() => {
    const sums = new Map<number, number>();
    keyCount = usage.data?.history.size ?? 0;
    for (const key of usage.data?.history.values() ?? []) {
      for (const [index, start] of key.starts.entries())
        sums.set(start, (sums.get(start) ?? 0) + (key.output[index] ?? 0));
    }
    return sums;
  });
  const watts = (): ReadonlyMap<number, number> => power.data?.watts ?? new Map();
  const energyIn = (within: TimeSpan): EnergyPerTokens =>
    energyPerTokens(
      { watts: watts(), bucketMinutes: powerBucketMinutes() },
      { byBucket: outputByBucket(), bucketMinutes: usageBucketMinutes() },
      within,
    );
  const powerIn = (stepMs: number): Float64Array => powerSteps(watts(), span(), stepMs);
  const energy = createMemo(() =>
    usage.data === undefined || power.data === undefined ? undefined : energyIn(span()),
  );
  return {
    ...timeRangeState,
    queries: [usage, power],
    span,
    usageBucketMinutes,
    powerBucketMinutes,
    isPowerLoading: () => power.isPlaceholderData || power.data === undefined,
    isUsageLoading: () => usage.isPlaceholderData || usage.data === undefined,
    energy,
    energyIn,
    peakPower: () => powerIn(powerBucketMinutes() * minuteMs).reduce((most, value) => (value > most ? value : most), 0),
    powerIn,
    outputIn: (stepMs) => outputSteps(outputByBucket(), span(), stepMs),
  };
}

function outputSteps(byBucket: ReadonlyMap<number, number>, span: TimeSpan, stepMs: number): Float64Array {
  const values = new Float64Array(Math.ceil((span.to - span.from) / stepMs));
  for (const [start, tokens] of byBucket) {
    const step = Math.floor((start - span.from) / stepMs);
    if (step >= 0 && step < values.length) values[step] = (values[step] ?? 0) + tokens;
  }
  return values;
}
