import { minutesPerDay, minutesPerHour, msPerMinute, offsetMinutes } from "../time/seoul.ts";

/** The requests of one key holder on an average day. */
export interface Traffic {
  /** At the busiest time of a workday. */
  requestsPerMinute: number;
  /** Per request, on average. */
  inputTokens: number;
  outputTokens: number;
  hours: keyof typeof shapes;
  /** The period of activity, in days before now. */
  daysAgo: readonly [from: number, to: number];
}

/** Traffic by hour of the day in Seoul (0 to 24), as a share of the busiest time's. */
const shapes = {
  office: (hour: number, weekend: boolean) =>
    (weekend ? 0.3 : 1) * (0.04 + bell(hour, 10.5, 1.8) + bell(hour, 15.5, 2.4)),
  evening: (hour: number) => 0.06 + bell(hour, 20.5, 2.6) + 0.3 * bell(hour, 8, 1.2),
  night: (hour: number) => (hour >= 1 && hour < 4.5 ? 1 : 0.03),
  always: (hour: number, weekend: boolean) => (weekend ? 0.6 : 0.8) + 0.25 * bell(hour, 14, 5),
} as const;

export interface Requests {
  requestCount: number;
  inputTokens: number;
  outputTokens: number;
}

/**
 * The requests of a key holder in the `minutes` from `minute` on. The same arguments always give the same result.
 * @param minute minutes since the epoch
 * @param seed makes the random part differ between key holders
 */
export function requestsIn(traffic: Traffic, minute: number, minutes: number, seed: number): Requests {
  const chance = (salt: number): number => noise(minute * 31 + seed * 7919 + salt);
  const expected = traffic.requestsPerMinute * minutes * shareAt(traffic.hours, minute) * (0.6 + 0.8 * chance(1));
  // Chance decides whether there is a request where less than one is expected.
  const requestCount = Math.floor(expected + chance(2));
  return {
    requestCount,
    inputTokens: Math.round(requestCount * traffic.inputTokens * (0.75 + 0.5 * chance(3))),
    outputTokens: Math.round(requestCount * traffic.outputTokens * (0.75 + 0.5 * chance(4))),
  };
}

/** @param ageMinutes before now */
export const isActiveAt = ({ daysAgo: [from, to] }: Traffic, ageMinutes: number): boolean =>
  ageMinutes <= from * minutesPerDay && ageMinutes >= to * minutesPerDay;

/** One request that is part of the traffic. */
export interface PlannedRequest {
  /** Epoch milliseconds. */
  startsAt: number;
  inputTokens: number;
  outputTokens: number;
}

/** The requests of `requestsIn` for one minute, spread over it. */
export function plannedRequests(traffic: Traffic, minute: number, seed: number): PlannedRequest[] {
  const { requestCount, inputTokens, outputTokens } = requestsIn(traffic, minute, 1, seed);
  const share = (tokens: number, index: number): number =>
    Math.round((tokens * (index + 1)) / requestCount) - Math.round((tokens * index) / requestCount);
  return Array.from({ length: requestCount }, (_, index) => ({
    startsAt: Math.floor(
      (minute + (index + noise(minute * 31 + seed * 7919 + 5 + index)) / requestCount) * msPerMinute,
    ),
    inputTokens: share(inputTokens, index),
    outputTokens: share(outputTokens, index),
  }));
}

function shareAt(hours: Traffic["hours"], minute: number): number {
  const local = minute + offsetMinutes;
  const weekday = (Math.floor(local / minutesPerDay) + 4) % 7;
  return shapes[hours]((local % minutesPerDay) / minutesPerHour, weekday === 0 || weekday === 6);
}

function bell(hour: number, middle: number, width: number): number {
  return Math.exp(-(((hour - middle) / width) ** 2));
}

/** Uniform from 0 to 1, by the finalizer of MurmurHash3. */
export function noise(seed: number): number {
  let hash = seed | 0;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
}
