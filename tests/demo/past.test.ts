import { describe, expect, test } from "bun:test";
import { personas } from "../../src/demo/personas.ts";
import { generatePast, loadInMinute } from "../../src/demo/past.ts";
import { plannedRequests } from "../../src/demo/traffic.ts";
import { readGpus } from "../../src/demo/gpu-host.ts";
import { minuteOf } from "../../src/time/seoul.ts";

const now = Date.parse("2026-03-04T05:06:07Z");
const keys = personas.map((persona, index) => ({ keyId: index + 1, persona }));
const { counts, requests, gpus } = generatePast(keys, now);
const dayMs = 24 * 60 * 60 * 1000;
const hourMinutes = 60;

describe("generatePast", () => {
  test("has counts in each five minutes of two days, so that a day compares with the one before", () => {
    const fiveMinutes = new Set(counts.map(({ minute }) => Math.floor(minute / 5)));
    const last = Math.floor(minuteOf(now) / 5) - 1;
    const missing = Array.from({ length: (2 * 24 * 60) / 5 }, (_, index) => last - index).filter(
      (bucket) => !fiveMinutes.has(bucket),
    );
    expect(missing).toEqual([]);
  });

  test("has the requests of the last day that are counted, in the order of their ends", () => {
    const ends = requests.map(({ endedAt }) => endedAt);
    expect(ends).toEqual(ends.toSorted((a, b) => a - b));
    expect(now - (ends[0] ?? 0)).toBeWithin(dayMs - 1, dayMs + 3_600_000);
    expect(now - (ends.at(-1) ?? 0)).toBeWithin(0, 60_000);
    expect(new Set(requests.map(({ record }) => record.requestId)).size).toBe(requests.length);
    // Those that ended by then, of an hour whose requests all ended long ago.
    const hour = Math.floor(minuteOf(now) / hourMinutes) - 3;
    const isInHour = (minute: number): boolean => Math.floor(minute / hourMinutes) === hour;
    const counted = counts.filter(({ minute }) => isInHour(minute));
    const logged = requests.filter(
      ({ record, endedAt }) => record.usage !== undefined && isInHour(minuteOf(endedAt - record.durationMs)),
    );
    const total = (values: number[]): number => values.reduce((sum, value) => sum + value, 0);
    expect([logged.length, total(logged.map(({ record }) => record.usage?.outputTokens ?? 0))]).toEqual([
      total(counted.map(({ requestCount }) => requestCount)),
      total(counted.map(({ outputTokens }) => outputTokens)),
    ]);
  });

  test("live requests continue the current minute where the history ends", () => {
    const minute = minuteOf(now);
    const whole = generatePast(keys, (minute + 1) * 60_000).counts.filter((count) => count.minute === minute);
    expect(whole.length).toBeGreaterThan(2);
    for (const { keyId, ...sums } of whole) {
      const before = counts.find((count) => count.keyId === keyId && count.minute === minute);
      const persona = keys[keyId - 1]?.persona;
      const live = persona === undefined ? [] : plannedRequests(persona.traffic, minute, keyId - 1);
      const after = live.filter(({ startsAt }) => startsAt >= now);
      const total = (field: "inputTokens" | "outputTokens"): number =>
        after.reduce((sum, request) => sum + request[field], before?.[field] ?? 0);
      expect([after.length + (before?.requestCount ?? 0), total("inputTokens"), total("outputTokens")]).toEqual([
        sums.requestCount,
        sums.inputTokens,
        sums.outputTokens,
      ]);
    }
  });

  test("the power of a live minute is that of the history", () => {
    const { minute, readings } = gpus.minutes.at(-1) ?? { minute: 0, readings: [] };
    expect(readGpus(loadInMinute(keys, minute), minute * 60_000)).toEqual([...readings]);
  });
});
