import type { Log } from "../log/log.ts";
import { requestRowOf } from "../store/requests/row.ts";
import type { Store } from "../store/store.ts";
import { createTrafficRecorder } from "../telemetry/traffic-recorder.ts";
import { minuteOf, minutesPerDay, minutesPerHour, msPerMinute } from "../time/seoul.ts";
import { pastGpus } from "./past-gpus.ts";
import { type KeyPersona, type PastRequest, pastRequests } from "./past-requests.ts";
import { usageOf } from "./personas.ts";
import { isActiveAt, plannedRequests, type Requests, requestsIn, type Traffic } from "./traffic.ts";
import { addUsage, countUsage, createIncrement, noUsage, type Usage, type UsageIncrement } from "../domain/usage.ts";

const pastMinutes = 30 * minutesPerDay;
/** Output of all GPUs at full load. */
const outputTokensPerMinute = 9000;
const requestMinutes = 25 * minutesPerHour;
const olderWeight = 10;
/** The last day, and the one that it is compared with; charts of older data are coarser and need fewer rows. */
const fineMinutes = 50 * minutesPerHour;
const coarseMinutes = 10;

/**
 * Generates what happened in thirty days up to `nowMs`, from where the simulated clients continue it. The same arguments
 * always give the same, but for the ids of requests.
 * @param backend host and port, as the request log shows them
 */
export function generatePast(keys: readonly KeyPersona[], nowMs: number, backend = "127.0.0.1:8000") {
  const now = minuteOf(nowMs);
  const [from, fineFrom] = [now - pastMinutes, now - fineMinutes];
  const counts = [
    ...every(coarseMinutes, from, fineFrom).flatMap((minute) => countsIn(keys, now, minute, coarseMinutes)),
    ...every(1, fineFrom, now).flatMap((minute) => countsIn(keys, now, minute, 1)),
  ];
  const loadIn = (minute: number): number => loadInMinute(keys, minute, now);
  const requestsFrom = (Math.floor((now - requestMinutes) / minutesPerHour) + 1) * minutesPerHour;
  const requestsOf = (minutes: readonly number[]): PastRequest[] =>
    pastRequests({ keys, minutes, to: nowMs, loadIn, backend });
  return {
    counts: [...counts, ...startedCounts(keys, nowMs)],
    /** Those of the last day; older ones are only counted. */
    requests: requestsOf(every(1, requestsFrom, now + 1)),
    /** Those of one minute in ten of the time before them, which stand for all. */
    older: requestsOf(every(olderWeight, from, requestsFrom)),
    gpus: pastGpus(from, now, loadIn),
  };
}

const every = (step: number, from: number, to: number): number[] =>
  Array.from({ length: Math.ceil((to - from) / step) }, (_, index) => from + index * step);

/** How busy the backend and its GPUs are in a minute, 0 to 1. @param now of live traffic that minute */
export const loadInMinute = (keys: readonly KeyPersona[], minute: number, now = minute): number => {
  const tokens = countsIn(keys, now, minute, 1).reduce((sum, { outputTokens }) => sum + outputTokens, 0);
  return Math.min(1, tokens / outputTokensPerMinute);
};

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

/** The charts of the last day have no finer steps; those of older days have hours. */
const [trafficStepMs, olderStepMs] = [5 * msPerMinute, minutesPerHour * msPerMinute];

/** Writes all of it but what GPUs measured, which the store takes only in pushes. */
export async function writePast(
  store: Pick<Store, "usage" | "traffic">,
  { counts, requests, older }: ReturnType<typeof generatePast>,
  log: Log,
): Promise<void> {
  const rows = requests.map(({ record, endedAt }) => ({
    values: requestRowOf(record, endedAt, record.usage),
    responseId: null,
  }));
  const byHour = (all: PastRequest[]): Iterable<PastRequest[]> =>
    Map.groupBy(all, ({ endedAt }) => Math.floor(minuteOf(endedAt) / minutesPerHour)).values();
  // Without waiting in between: the store runs the writes in sequence.
  await store.usage.add(counts, undefined, [], { rows, amendments: [] });
  for (const ended of byHour(requests)) await recordTraffic(store, ended, log, trafficStepMs);
  for (const ended of byHour(older)) await recordTraffic(store, ended, log, olderStepMs, olderWeight);
}

/**
 * As the server does when they end. No more than an hour at once: the recorder bounds how many sums it keeps.
 * @param weight for how many each of them stands
 */
async function recordTraffic(
  { traffic }: Pick<Store, "traffic">,
  requests: PastRequest[],
  log: Log,
  stepMs: number,
  weight = 1,
): Promise<void> {
  let now = 0;
  const recorder = createTrafficRecorder({
    write: ({ latencies, outcomes, backends }) =>
      traffic.add({
        latencies: latencies.map((one) => Object.assign(one, { requestCount: one.requestCount * weight })),
        outcomes: outcomes.map((one) => Object.assign(one, { count: one.count * weight })),
        backends,
      }),
    clock: () => now,
    log,
  });
  for (const { record, endedAt } of requests) {
    now = endedAt - (endedAt % stepMs);
    recorder.finished(record);
  }
  await recorder.close();
}
