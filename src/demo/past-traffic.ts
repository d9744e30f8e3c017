import { bucketOf, encodeHistogram, type Histogram } from "../domain/histogram.ts";
import type { UsageIncrement } from "../domain/usage.ts";
import type { StoredLatency, StoredOutcome, StoredTraffic } from "../store/traffic/contract.ts";
import { minuteOf, minutesPerHour, msPerMinute } from "../time/seoul.ts";
import { slownessAt, speedOf } from "./backend.ts";
import type { KeyPersona } from "./past-requests.ts";
import type { Persona } from "./personas.ts";
import { noise } from "./traffic.ts";

/** So many requests of each hour and key stand for all. */
const samplesPerHour = 8;

/** Latencies and failures of what is known only as counts: a million requests are too many to go through the recorder. */
export function trafficOfCounts(
  counts: readonly UsageIncrement[],
  keys: readonly KeyPersona[],
  loadIn: (minute: number) => number,
): StoredTraffic {
  const personas = new Map(keys.map(({ keyId, persona }) => [keyId, persona]));
  const hours = hoursOf(counts).flatMap((sum) => {
    const persona = personas.get(sum.keyId);
    return persona === undefined ? [] : [trafficOfHour(sum, persona, loadIn)];
  });
  return {
    latencies: hours.map(({ latency }) => latency),
    outcomes: hours.flatMap(({ outcomes }) => outcomes),
    backends: [],
  };
}

function trafficOfHour(
  { keyId, hour, requestCount, inputTokens, outputTokens }: HourSum,
  { model, streamed }: Persona,
  loadIn: (minute: number) => number,
): { latency: StoredLatency; outcomes: StoredOutcome[] } {
  const firstByte: Histogram = new Map();
  const duration: Histogram = new Map();
  const tokensPerSecond: Histogram = new Map();
  const samples = Math.min(samplesPerHour, requestCount);
  const of = {
    minute: hour * minutesPerHour,
    keyId,
    outcome: "completed",
    lastAt: hour * minutesPerHour * msPerMinute,
  };
  const outcomes: StoredOutcome[] = [{ ...of, code: "", count: requestCount }];
  for (let index = 0; index < samples; index++) {
    const startsAt = Math.floor((hour + index / samples) * minutesPerHour * msPerMinute);
    const minute = minuteOf(startsAt);
    const chance = (salt: number): number => noise(startsAt * 31 + keyId * 101 + salt);
    const weight = shareOf(requestCount, index, samples);
    const tokens = (outputTokens / requestCount) * (0.5 + chance(1));
    const speed = speedOf({ startsAt, inputTokens: (inputTokens / requestCount) * (0.5 + chance(2)) }, loadIn(minute));
    const flowMs = (tokens / speed.tokensPerSecond) * 1000;
    addWeighted(duration, speed.firstByteMs + flowMs, weight);
    if (streamed) {
      addWeighted(firstByte, speed.firstByteMs, weight);
      addWeighted(tokensPerSecond, speed.tokensPerSecond, weight);
    }
    const failed = Math.floor(weight * (slownessAt(minute) > 1 ? 0.08 : 0.0012) + chance(3));
    if (failed > 0) outcomes.push({ ...of, code: "status_503", count: failed, lastAt: startsAt });
  }
  const latency = {
    minute: of.minute,
    model,
    requestCount,
    firstByte: encodeHistogram(firstByte),
    duration: encodeHistogram(duration),
    tokensPerSecond: encodeHistogram(tokensPerSecond),
    queueWait: "",
  };
  return { latency, outcomes };
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
    const none = { keyId, hour, requestCount: 0, inputTokens: 0, outputTokens: 0 };
    const sum = sums.getOrInsert(`${keyId} ${hour}`, none);
    sum.requestCount += requestCount;
    sum.inputTokens += inputTokens;
    sum.outputTokens += outputTokens;
  }
  return [...sums.values()];
}

/** Whole parts of a number that add up to it. */
const shareOf = (whole: number, index: number, parts: number): number =>
  Math.floor((whole * (index + 1)) / parts) - Math.floor((whole * index) / parts);

function addWeighted(histogram: Histogram, value: number, weight: number): void {
  const bucket = bucketOf(value);
  histogram.set(bucket, (histogram.get(bucket) ?? 0) + weight);
}
