export type Phase = "calm" | "attacked" | "locked";

/** A stretch of time in one phase, epoch milliseconds. */
export interface Stretch {
  phase: Phase;
  from: number;
  to: number;
}

/** Calm and attacked by turns, so that what else the machine does falls on both alike. */
const cycle: readonly { phase: Phase; ms: number }[] = [
  { phase: "calm", ms: 15_000 },
  { phase: "attacked", ms: 15_000 },
  // Another program holds the database: responses wait for their counts, whatever else happens.
  { phase: "locked", ms: 5000 },
];

/** Cycles from a start until an end. */
export function planPhases(startsAt: number, endsAt: number): Stretch[] {
  const stretches: Stretch[] = [];
  for (let from = startsAt, n = 0; from < endsAt; n++) {
    const { phase, ms } = cycle[n % cycle.length] as (typeof cycle)[number];
    stretches.push({ phase, from, to: Math.min(from + ms, endsAt) });
    from += ms;
  }
  return stretches;
}

/** A completion as the probe measured it, in milliseconds. */
export interface Latency {
  startedAt: number;
  tookMs: number;
}

/** Percentiles of the completions that started in the phase, and how many there were. */
export function percentilesIn(latencies: readonly Latency[], stretches: readonly Stretch[], phase: Phase) {
  const times = latencies
    .filter(({ startedAt }) => stretches.some((each) => each.phase === phase && isIn(each, startedAt)))
    .map(({ tookMs }) => tookMs)
    .toSorted((a, b) => a - b);
  const at = (share: number): number => times[Math.floor(times.length * share)] ?? Number.NaN;
  return { count: times.length, p50Ms: at(0.5), p99Ms: at(0.99) };
}

const isIn = ({ from, to }: Stretch, time: number): boolean => time >= from && time < to;
