import { bucketOf, encodeHistogram, type Histogram } from "../domain/histogram.ts";
import type { StoredTraffic } from "../store/traffic/contract.ts";
import { minuteOf, minutesPerHour, msPerMinute } from "../time/seoul.ts";
import { slownessAt, speedOf } from "./backend.ts";
import type { KeyPersona, PastRequest } from "./past-requests.ts";
import { noise } from "./traffic.ts";
import { refusals } from "../domain/requests.ts";
import type { UsageIncrement } from "../domain/usage.ts";

/** The charts of the last day have no finer steps. */
const latencyMinutes = 5;
/** In older traffic, so many requests of each hour, key and model stand for all. */
const samplesPerHour = 8;

interface LatencySum {
  minute: number;
  model: string;
  requestCount: number;
  firstByte: Histogram;
  duration: Histogram;
  tokensPerSecond: Histogram;
  queueWait: Histogram;
}

/** Latencies and failures by the same rules as those of live requests. */
export function trafficOf(requests: readonly PastRequest[]): StoredTraffic {
  const sums = createTrafficSums();
  for (const { record, endedAt, usage } of requests) {
    const { outcome, code, status, keyId = 0, modelSent = "", durationMs, firstByteMs, streamed } = record;
    const success = status < 400 ? "" : `status_${status}`;
    const minute = Math.floor(minuteOf(endedAt) / latencyMinutes) * latencyMinutes;
    const failure = outcome === "completed" ? success : (code ?? outcome);
    sums.addOutcome({ minute, keyId, outcome, code: failure, count: 1, lastAt: endedAt });
    if (refusals.has(outcome)) continue;
    const outputTokens = streamed ? (usage?.outputTokens ?? 0) : 0;
    sums.addLatency(minute, modelSent, 1, {
      durationMs,
      firstByteMs: streamed ? firstByteMs : undefined,
      outputTokens,
    });
  }
  return sums.traffic();
}

/** The same for what is known only as counts. */
export function trafficOfCounts(
  counts: readonly UsageIncrement[],
  keys: readonly KeyPersona[],
  loadIn: (minute: number) => number,
): StoredTraffic {
  const sums = createTrafficSums();
  const personas = new Map(keys.map(({ keyId, persona }) => [keyId, persona]));
  for (const { keyId, hour, requestCount, inputTokens, outputTokens } of hoursOf(counts)) {
    const persona = personas.get(keyId);
    if (persona === undefined) continue;
    const samples = Math.min(samplesPerHour, requestCount);
    for (let index = 0; index < samples; index++) {
      const startsAt = Math.floor((hour + index / samples) * minutesPerHour * msPerMinute);
      const minute = minuteOf(startsAt);
      const chance = (salt: number): number => noise(startsAt * 31 + keyId * 101 + salt);
      const weight = shareOf(requestCount, index, samples);
      const tokens = (outputTokens / requestCount) * (0.5 + chance(1));
      const planned = { startsAt, inputTokens: (inputTokens / requestCount) * (0.5 + chance(2)) };
      const speed = speedOf(planned, loadIn(minute));
      const durationMs = speed.firstByteMs + (tokens / speed.tokensPerSecond) * 1000;
      const streamed = persona.streamed
        ? { firstByteMs: speed.firstByteMs, outputTokens: tokens }
        : { outputTokens: 0 };
      sums.addLatency(hour * minutesPerHour, persona.model, weight, { durationMs, ...streamed });
      const failed = Math.floor(weight * (slownessAt(minute) > 1 ? 0.08 : 0.0012) + chance(3));
      const outcome = { minute: hour * minutesPerHour, keyId, lastAt: startsAt };
      sums.addOutcome({ ...outcome, outcome: "completed", code: "", count: weight });
      if (failed > 0) sums.addOutcome({ ...outcome, outcome: "completed", code: "status_503", count: failed });
    }
  }
  return sums.traffic();
}

interface HourSum {
  keyId: number;
  hour: number;
  requestCount: number;
  inputTokens: number;
  outputTokens: number;
}

function hoursOf(counts: readonly UsageIncrement[]): HourSum[] {
  const sums = new Map<string, HourSum>();
  for (const { keyId, minute, requestCount, inputTokens, outputTokens } of counts) {
    const hour = Math.floor(minute / minutesPerHour);
    const sum = sums.get(`${keyId} ${hour}`) ?? { keyId, hour, requestCount: 0, inputTokens: 0, outputTokens: 0 };
    sums.set(`${keyId} ${hour}`, sum);
    sum.requestCount += requestCount;
    sum.inputTokens += inputTokens;
    sum.outputTokens += outputTokens;
  }
  return [...sums.values()];
}

/** Whole parts of a number that add up to it. */
const shareOf = (whole: number, index: number, parts: number): number =>
  Math.floor((whole * (index + 1)) / parts) - Math.floor((whole * index) / parts);

interface Times {
  durationMs: number;
  /** Undefined for a response that is not streamed. */
  firstByteMs?: number | undefined;
  /** 0: unknown. */
  outputTokens: number;
}

function createTrafficSums() {
  const latencies = new Map<string, LatencySum>();
  const outcomes = new Map<string, StoredTraffic["outcomes"][number]>();

  return {
    addLatency(minute: number, model: string, weight: number, { durationMs, firstByteMs, outputTokens }: Times): void {
      const id = `${minute} ${model}`;
      const sum = latencies.get(id) ?? {
        minute,
        model,
        requestCount: 0,
        firstByte: new Map(),
        duration: new Map(),
        tokensPerSecond: new Map(),
        queueWait: new Map(),
      };
      latencies.set(id, sum);
      sum.requestCount += weight;
      addWeighted(sum.duration, durationMs, weight);
      if (firstByteMs === undefined) return;
      addWeighted(sum.firstByte, firstByteMs, weight);
      const flowMs = durationMs - firstByteMs;
      if (outputTokens > 0 && flowMs > 0) addWeighted(sum.tokensPerSecond, (outputTokens / flowMs) * 1000, weight);
    },
    addOutcome(added: StoredTraffic["outcomes"][number]): void {
      const id = `${added.minute} ${added.keyId} ${added.outcome} ${added.code}`;
      const sum = outcomes.get(id);
      if (sum === undefined) outcomes.set(id, added);
      else {
        sum.count += added.count;
        sum.lastAt = Math.max(sum.lastAt, added.lastAt);
      }
    },
    traffic: (): StoredTraffic => ({
      latencies: Array.from(latencies.values(), (sum) => ({
        ...sum,
        firstByte: encodeHistogram(sum.firstByte),
        duration: encodeHistogram(sum.duration),
        tokensPerSecond: encodeHistogram(sum.tokensPerSecond),
        queueWait: encodeHistogram(sum.queueWait),
      })),
      outcomes: [...outcomes.values()],
      backends: [],
    }),
  };
}

function addWeighted(histogram: Histogram, value: number, weight: number): void {
  const bucket = bucketOf(value);
  histogram.set(bucket, (histogram.get(bucket) ?? 0) + weight);
}
