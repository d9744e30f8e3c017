import { createMemo } from "solid-js";
import { type EnergyPerTokens, energyPerTokens, powerSteps } from "./energy.ts";
import { now } from "./server-clock.ts";
import { useView, type ViewControl } from "./use-time-range.ts";
import { useHistory, usePower } from "./queries.ts";
import { minuteMs } from "./seoul-time.ts";
import { bucketQuery, sameQuery, sameSpan, type Span, visibleSpan } from "./time-range.ts";

export interface EnergyView extends ViewControl {
  queries: readonly [ReturnType<typeof useHistory>, ReturnType<typeof usePower>];
  span: () => Span;
  bucketMinutes: () => number;
  powerMinutes: () => number;
  isPowerLoading: () => boolean;
  isUsageLoading: () => boolean;
  /** Undefined while it loads. */
  energy: () => EnergyPerTokens | undefined;
  energyIn: (span: Span) => EnergyPerTokens;
  /** Watts; 0 where nothing was measured. */
  peakPower: () => number;
  powerIn: (stepMs: number) => Float64Array;
  outputIn: (stepMs: number) => Float64Array;
}

/** Power and output tokens over the span that the address asks for. */
export function useEnergyView(): EnergyView {
  const control = useView("24h");
  const { view } = control;
  let keysSeen = 0;
  const asked = createMemo(() => bucketQuery(view(), now(), keysSeen), undefined, { equals: sameQuery });
  // Each power point counts its bucket at its maximum: the finer the buckets, the closer the bound.
  const finest = (): number => (asked().days <= 7 || view().zoom !== undefined ? 1 : 5);
  const powerAsked = createMemo(() => ({ days: asked().days, bucketMinutes: finest() }), undefined, {
    equals: sameQuery,
  });
  const usage = useHistory(asked);
  const power = usePower(powerAsked);

  const bucketMinutes = (): number => usage.data?.bucketMinutes ?? asked().bucketMinutes;
  const powerMinutes = (): number => power.data?.bucketMinutes ?? powerAsked().bucketMinutes;
  const span = createMemo(() => visibleSpan(view(), usage.data?.at ?? now(), bucketMinutes()), undefined, {
    equals: sameSpan,
  });
  const outputByBucket = createMemo(() => {
    const sums = new Map<number, number>();
    keysSeen = usage.data?.history.size ?? 0;
    for (const key of usage.data?.history.values() ?? []) {
      for (const [index, start] of key.starts.entries())
        sums.set(start, (sums.get(start) ?? 0) + (key.output[index] ?? 0));
    }
    return sums;
  });
  const watts = (): ReadonlyMap<number, number> => power.data?.watts ?? new Map();
  const energyIn = (within: Span): EnergyPerTokens =>
    energyPerTokens(
      { watts: watts(), bucketMinutes: powerMinutes() },
      { byBucket: outputByBucket(), bucketMinutes: bucketMinutes() },
      within,
    );
  const powerIn = (stepMs: number): Float64Array => powerSteps(watts(), span(), stepMs);
  const energy = createMemo(() =>
    usage.data === undefined || power.data === undefined ? undefined : energyIn(span()),
  );
  return {
    ...control,
    queries: [usage, power],
    span,
    bucketMinutes,
    powerMinutes,
    isPowerLoading: () => power.isPlaceholderData || power.data === undefined,
    isUsageLoading: () => usage.isPlaceholderData || usage.data === undefined,
    energy,
    energyIn,
    peakPower: () => powerIn(powerMinutes() * minuteMs).reduce((most, value) => (value > most ? value : most), 0),
    powerIn,
    outputIn: (stepMs) => outputSteps(outputByBucket(), span(), stepMs),
  };
}

function outputSteps(byBucket: ReadonlyMap<number, number>, span: Span, stepMs: number): Float64Array {
  const values = new Float64Array(Math.ceil((span.to - span.from) / stepMs));
  for (const [start, tokens] of byBucket) {
    const step = Math.floor((start - span.from) / stepMs);
    if (step >= 0 && step < values.length) values[step] = (values[step] ?? 0) + tokens;
  }
  return values;
}
