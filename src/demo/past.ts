import type { Log } from "../log/log.ts";
import { requestRowOf } from "../store/requests/row.ts";
import type { Store } from "../store/store.ts";
import type { StoredTraffic } from "../store/traffic/contract.ts";
import { createTrafficRecorder } from "../telemetry/traffic-recorder.ts";
import { minuteOf, minutesPerDay, minutesPerHour, msPerMinute, dayNumberOf } from "../time/seoul.ts";
import { type GpuPast, pastGpus } from "./past-gpus.ts";
import { type KeyPersona, type PastRequest, pastRequests } from "./past-requests.ts";
import { trafficOfCounts } from "./past-traffic.ts";
import { usageOf } from "./personas.ts";
import { isActiveAt, plannedRequests, type Requests, requestsIn, type Traffic } from "./traffic.ts";
import { addUsage, countUsage, createIncrement, noUsage, type Usage, type UsageIncrement } from "../domain/usage.ts";
import type { CounterReading } from "../store/usage/contract.ts";

interface Past {
  counts: UsageIncrement[];
  /** Those of the last day; older ones are only counted. */
  requests: PastRequest[];
  /** Of the time before them. */
  olderTraffic: StoredTraffic;
  gpus: GpuPast;
  /** Readings of the backend's own counters, in the order of time. */
  readings: CounterReading[];
}

const pastMinutes = 30 * minutesPerDay;
/** Output of all GPUs at full load. */
const outputTokensPerMinute = 9000;
const requestMinutes = 25 * minutesPerHour;

/** Charts of older data are coarser and need fewer rows. Both in minutes. */
const countBuckets = [
  // The last day, and the one that it is compared with.
  { upToAge: 50 * minutesPerHour, bucketMinutes: 1 },
  { upToAge: pastMinutes, bucketMinutes: 10 },
];

/**
 * Generates what happened in thirty days up to `nowMs`, from where the simulated clients continue it. The same arguments
 * always give the same.
 * @param backend host and port, as the request log shows them
 */
export function generatePast(keys: readonly KeyPersona[], nowMs: number, backend = "127.0.0.1:8000"): Past {
  const now = minuteOf(nowMs);
  const counts = momentsBefore(now, countBuckets).flatMap(({ minute, bucketMinutes }) =>
    countsIn(keys, now, minute, bucketMinutes),
  );
  const loadIn = loadsOf(counts, keys, now);
  const requestsFrom = (Math.floor((now - requestMinutes) / minutesPerHour) + 1) * minutesPerHour;
  const requests = pastRequests({ keys, from: requestsFrom * msPerMinute, to: nowMs, loadIn, backend });
  const older = counts.filter(({ minute }) => minute < requestsFrom);
  return {
    counts: [...counts, ...startedCounts(keys, nowMs)],
    requests,
    olderTraffic: trafficOfCounts(older, keys, loadIn),
    gpus: pastGpus(now - pastMinutes, now, loadIn),
    readings: pastCounters(counts, now),
  };
}

/** How busy the backend and its GPUs are in a minute of live traffic, 0 to 1. */
export const loadInMinute = (keys: readonly KeyPersona[], minute: number): number => {
  const tokens = countsIn(keys, minute, minute, 1).reduce((sum, { outputTokens }) => sum + outputTokens, 0);
  return Math.min(1, tokens / outputTokensPerMinute);
};

/** The load of each minute of the past; of older minutes that of the bucket that they are in. */
function loadsOf(counts: readonly UsageIncrement[], keys: readonly KeyPersona[], now: number) {
  const tokens = new Map<number, number>();
  for (const { minute, outputTokens } of counts) tokens.set(minute, (tokens.get(minute) ?? 0) + outputTokens);
  const loads = new Map<number, number>();
  for (const { minute, bucketMinutes } of momentsBefore(now, countBuckets)) {
    const load = Math.min(1, (tokens.get(minute) ?? 0) / bucketMinutes / outputTokensPerMinute);
    for (let at = minute; at < minute + bucketMinutes; at++) loads.set(at, load);
  }
  return (minute: number): number => loads.get(minute) ?? loadInMinute(keys, minute);
}

interface Moment {
  minute: number;
  bucketMinutes: number;
}

function momentsBefore(now: number, buckets: typeof countBuckets): Moment[] {
  const moments: Moment[] = [];
  for (let minute = now - pastMinutes; minute < now;) {
    const bucketMinutes = buckets.find(({ upToAge }) => now - minute <= upToAge)?.bucketMinutes ?? 1;
    moments.push({ minute, bucketMinutes });
    minute += bucketMinutes;
  }
  return moments;
}

/** @param now in minutes since the epoch, like `minute` */
const countsIn = (keys: readonly KeyPersona[], now: number, minute: number, minutes: number): UsageIncrement[] =>
  countsOf(keys, now, minute, (traffic, seed) => requestsIn(traffic, minute, minutes, seed));

/** The requests of the current minute that started before `nowMs`; the clients send the others. */
function startedCounts(keys: readonly KeyPersona[], nowMs: number): UsageIncrement[] {
  const now = minuteOf(nowMs);
  return countsOf(keys, now, now, (traffic, seed) => {
    const started = plannedRequests(traffic, now, seed).filter(({ startsAt }) => startsAt < nowMs);
    return { requestCount: started.length, ...started.reduce<Usage>(addUsage, noUsage) };
  });
}

const countsOf = (
  keys: readonly KeyPersona[],
  now: number,
  minute: number,
  requestsOf: (traffic: Traffic, seed: number) => Requests,
): UsageIncrement[] =>
  keys.flatMap(({ keyId, persona }, seed) => {
    const { traffic, model, path } = persona;
    if (!isActiveAt(traffic, now - minute)) return [];
    const { requestCount, ...tokens } = requestsOf(traffic, seed);
    if (requestCount === 0) return [];
    const counted = countUsage(usageOf(persona, tokens), path === "/v1/messages");
    return [createIncrement(counted, { keyId, minute, lastClosedAt: minute * msPerMinute, model, requestCount })];
  });

/** The store refuses calls if too many wait. */
const batchSize = 100;

/** The charts of the last day have no finer steps. */
const trafficStepMs = 5 * msPerMinute;

/** Writes all of it but what GPUs measured, which the store takes only in pushes. */
export async function writePast(
  store: Pick<Store, "usage" | "traffic" | "reconciliation">,
  { counts, requests, olderTraffic, readings }: Past,
  log: Log,
): Promise<void> {
  const rows = requests.map(({ record, endedAt, usage }) => ({
    values: requestRowOf(record, endedAt, usage),
    responseId: null,
  }));
  const hours = Map.groupBy(requests, ({ endedAt }) => Math.floor(minuteOf(endedAt) / minutesPerHour));
  // Without waiting in between: the store runs the writes in sequence.
  await Promise.all([
    store.usage.add(counts, undefined, [], { rows, amendments: [] }),
    store.traffic.add(olderTraffic),
    ...Array.from(hours.values(), (ended) => recordTraffic(store, ended, log)),
  ]);
  // Each reading is compared with what was counted since the last one.
  for (let first = 0; first < readings.length; first += batchSize) {
    await Promise.all(readings.slice(first, first + batchSize).map((reading) => store.reconciliation.add(reading)));
  }
}

/** As the server does when they end. No more than an hour at once: the recorder bounds how many sums it keeps. */
async function recordTraffic({ traffic }: Pick<Store, "traffic">, requests: PastRequest[], log: Log): Promise<void> {
  let now = 0;
  const recorder = createTrafficRecorder({ write: (sums) => traffic.add(sums), clock: () => now, log });
  for (const { record, endedAt } of requests) {
    now = endedAt - (endedAt % trafficStepMs);
    recorder.finished(record);
  }
  await recorder.close();
}

const days = 3;
/** No longer than between two readings that are compared. */
const stepMinutes = 10;
/** What clients leave behind when they go: the backend generated it, and did not report it. */
const uncountedShare = 0.004;
/** On one day, somebody reached the backend without Tollgate. */
const drift = { daysAgo: 1, share: 0.11 };

/** The counters of a backend that served what was counted, and a little more. @param now minutes since the epoch */
function pastCounters(counts: readonly UsageIncrement[], now: number): CounterReading[] {
  const from = now - days * minutesPerDay;
  const driftDay = dayNumberOf(now * msPerMinute) - drift.daysAgo;
  const readings: CounterReading[] = [];
  let [generated, prompt] = [0, 0];
  const byTime = counts.filter(({ minute }) => minute >= from).toSorted((a, b) => a.minute - b.minute);
  let next = 0;
  for (let minute = from; minute <= now; minute += Math.min(stepMinutes, Math.max(1, now - minute))) {
    for (let one = byTime[next]; one !== undefined && one.minute < minute; one = byTime[++next]) {
      const isDrifting = dayNumberOf(one.minute * msPerMinute) === driftDay;
      generated += one.outputTokens * (1 + (isDrifting ? drift.share : uncountedShare));
      prompt += one.inputTokens * (1 + (isDrifting ? drift.share : 0));
    }
    const at = minute * msPerMinute;
    readings.push({ source: "vllm", at, generatedTokens: Math.round(generated), promptTokens: Math.round(prompt) });
  }
  return readings;
}
