import { demoEmbeddingModel, demoModel } from "./client-behaviour.ts";
import type { GpuReading } from "../domain.ts";
import { advanceGpuHost, idleGpuHost, readGpus } from "../simulator/gpu-host.ts";
import type { Store } from "../store/store.ts";
import type { UsageIncrement } from "../store/usage-store.ts";
import { minuteOf, minutesPerDay, minutesPerHour, msPerMinute } from "../time/seoul.ts";
import { plannedRequests, requestsIn, type Traffic } from "./traffic.ts";

export interface KeyTraffic {
  keyId: number;
  traffic: Traffic;
}

export interface History {
  counts: UsageIncrement[];
  power: { recordedAt: number; readings: GpuReading[] }[];
}

export const gpuCount = 4;
export const gpuHostName = "gpu-01";

const historyMinutes = 30 * minutesPerDay;
/** Output of all GPUs at full load. */
const outputTokensPerMinute = 9000;

/** Charts of older data are coarser and need fewer rows. Ages and steps in minutes. */
const countSteps = [
  { upToAge: 26 * minutesPerHour, step: 1 },
  { upToAge: historyMinutes, step: 10 },
];
const powerSteps = [
  { upToAge: 2 * minutesPerHour, step: 1 },
  { upToAge: 26 * minutesPerHour, step: 2 },
  { upToAge: 8 * minutesPerDay, step: 15 },
  { upToAge: historyMinutes, step: 60 },
];

/**
 * Generates thirty days of history up to `nowMs`, from where the simulated clients continue it. The same arguments always
 * give the same history.
 */
export function generateHistory(keys: readonly KeyTraffic[], nowMs: number): History {
  const now = minuteOf(nowMs);
  const counts = momentsBefore(now, countSteps).flatMap(({ minute, step }) => countsIn(keys, now, minute, step));
  return { counts: [...counts, ...startedCounts(keys, nowMs)], power: powerSamples(keys, now) };
}

/** How busy the GPUs are in a minute of live traffic, 0 to 1. */
export const loadInMinute = (keys: readonly KeyTraffic[], minute: number): number => loadIn(keys, minute, minute, 1);

interface Moment {
  minute: number;
  step: number;
}

function momentsBefore(now: number, steps: typeof countSteps): Moment[] {
  const moments: Moment[] = [];
  for (let minute = now - historyMinutes; minute < now;) {
    const step = steps.find(({ upToAge }) => now - minute <= upToAge)?.step ?? 1;
    moments.push({ minute, step });
    minute += step;
  }
  return moments;
}

function countsIn(keys: readonly KeyTraffic[], now: number, minute: number, step: number): UsageIncrement[] {
  return keys.flatMap(({ keyId, traffic }, index) => {
    if (!isActiveAt(traffic, now - minute)) return [];
    const requests = requestsIn(traffic, minute, step, index);
    return requests.requestCount === 0 ? [] : [{ keyId, minute, lastClosedAt: minute * msPerMinute, ...requests }];
  });
}

/** The requests of the current minute that started before `nowMs`; the clients send the others. */
function startedCounts(keys: readonly KeyTraffic[], nowMs: number): UsageIncrement[] {
  const minute = minuteOf(nowMs);
  return keys.flatMap(({ keyId, traffic }, index) => {
    if (!isActiveAt(traffic, 0)) return [];
    const started = plannedRequests(traffic, minute, index).filter(({ startsAt }) => startsAt < nowMs);
    if (started.length === 0) return [];
    return [
      {
        keyId,
        minute,
        lastClosedAt: minute * msPerMinute,
        requestCount: started.length,
        inputTokens: started.reduce((sum, request) => sum + request.inputTokens, 0),
        outputTokens: started.reduce((sum, request) => sum + request.outputTokens, 0),
      },
    ];
  });
}

function isActiveAt({ daysAgo: [from, to] }: Traffic, ageMinutes: number): boolean {
  return ageMinutes <= from * minutesPerDay && ageMinutes >= to * minutesPerDay;
}

function powerSamples(keys: readonly KeyTraffic[], now: number): History["power"] {
  let host = idleGpuHost(gpuCount);
  return momentsBefore(now, powerSteps).map(({ minute, step }) => {
    const recordedAt = minute * msPerMinute;
    host = advanceGpuHost(host, loadIn(keys, now, minute, step), recordedAt, step * msPerMinute);
    return { recordedAt, readings: readGpus(host, recordedAt) };
  });
}

function loadIn(keys: readonly KeyTraffic[], now: number, minute: number, step: number): number {
  const written = countsIn(keys, now, minute, step).reduce((sum, { outputTokens }) => sum + outputTokens, 0);
  return Math.min(1, written / step / outputTokensPerMinute);
}

/** Embeddings have no output tokens. */
const modelOf = ({ outputTokens }: UsageIncrement): string => (outputTokens === 0 ? demoEmbeddingModel : demoModel);

/** The store refuses calls if too many wait. */
const batchSize = 100;

/** @param gpuKeyId the key of the GPU host */
export async function writeHistory(
  store: Pick<Store, "usage" | "gpu">,
  { counts, power }: History,
  gpuKeyId: number,
): Promise<void> {
  await store.usage.add(counts.map((count) => Object.assign(count, { model: modelOf(count) })));
  for (let first = 0; first < power.length; first += batchSize) {
    const batch = power.slice(first, first + batchSize);
    // Without waiting in between, because the store runs the writes in sequence.
    await Promise.all(batch.map((sample) => store.gpu.add({ keyId: gpuKeyId, host: gpuHostName, ...sample })));
  }
}
