import { demoEmbeddingModel, demoModel } from "./client-behaviour.ts";
import type { GpuReading } from "../domain.ts";
import { advanceGpuHost, idleGpuHost, readGpus } from "../simulator/gpu-host.ts";
import type { Store, UsageIncrement } from "../store/store.ts";
import { minuteOf, minutesPerDay, minutesPerHour, msPerMinute } from "../time/seoul.ts";
import { requestsIn, type Traffic } from "./traffic.ts";

export interface KeyTraffic {
  keyId: number;
  traffic: Traffic;
}

export interface History {
  counts: UsageIncrement[];
  power: { recordedAt: number; readings: GpuReading[] }[];
}

export const gpuCount = 4;

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

/** Generates thirty days of history up to the minute before `nowMs`. The same arguments always give the same history. */
export function generateHistory(keys: readonly KeyTraffic[], nowMs: number): History {
  const now = minuteOf(nowMs);
  const counts = momentsBefore(now, countSteps).flatMap(({ minute, step }) => countsIn(keys, now, minute, step));
  return { counts, power: powerSamples(keys, now) };
}

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

function isActiveAt({ daysAgo: [from, to] }: Traffic, ageMinutes: number): boolean {
  return ageMinutes <= from * minutesPerDay && ageMinutes > to * minutesPerDay;
}

function powerSamples(keys: readonly KeyTraffic[], now: number): History["power"] {
  let host = idleGpuHost(gpuCount);
  return momentsBefore(now, powerSteps).map(({ minute, step }) => {
    const recordedAt = minute * msPerMinute;
    const written = countsIn(keys, now, minute, step).reduce((sum, { outputTokens }) => sum + outputTokens, 0);
    host = advanceGpuHost(host, Math.min(1, written / step / outputTokensPerMinute), recordedAt, step * msPerMinute);
    return { recordedAt, readings: readGpus(host, recordedAt) };
  });
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
    await Promise.all(batch.map((sample) => store.gpu.add({ keyId: gpuKeyId, ...sample })));
  }
}
