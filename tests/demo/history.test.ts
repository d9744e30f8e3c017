import { describe, expect, test } from "bun:test";
import { personas } from "../../src/demo/personas.ts";
import { gpuCount, generateHistory, type KeyTraffic, loadInMinute } from "../../src/demo/history.ts";
import { plannedRequests } from "../../src/demo/traffic.ts";
import { advanceGpuHost, idleGpuHost, readGpus } from "../../src/simulator/gpu-host.ts";
import { minuteOf } from "../../src/time/seoul.ts";

const now = Date.parse("2026-03-04T05:06:07Z");
const keys: KeyTraffic[] = personas.map(({ traffic }, index) => ({ keyId: index + 1, traffic }));
const { counts, power } = generateHistory(keys, now);
const dayMs = 24 * 60 * 60 * 1000;

describe("generateHistory", () => {
  test("generates the same history for the same time", () => {
    expect(generateHistory(keys, now)).toEqual({ counts, power });
  });

  test("covers thirty days up to now", () => {
    const minutes = counts.map(({ minute }) => minute);
    expect(minuteOf(now) - Math.min(...minutes)).toBeWithin(29 * 24 * 60, 30 * 24 * 60 + 1);
    expect(Math.max(...minutes)).toBeLessThanOrEqual(minuteOf(now));
    expect(counts.every(({ minute, lastClosedAt }) => minuteOf(lastClosedAt) === minute)).toBeTrue();
  });

  test("has at most one row for each key and minute", () => {
    expect(new Set(counts.map(({ minute, keyId }) => `${minute} ${keyId}`)).size).toBe(counts.length);
  });

  test("keeps each key within its period of activity", () => {
    for (const { keyId, traffic } of keys) {
      const ages = counts
        .filter((count) => count.keyId === keyId)
        .map(({ lastClosedAt }) => (now - lastClosedAt) / dayMs);
      expect(ages.length).toBeGreaterThan(100);
      expect(Math.max(...ages)).toBeLessThanOrEqual(traffic.daysAgo[0] + 0.001);
      expect(Math.min(...ages)).toBeGreaterThanOrEqual(traffic.daysAgo[1]);
    }
  });

  test("is small enough to write quickly", () => {
    expect(counts.length).toBeLessThan(40_000);
    expect(power.length).toBeLessThan(3000);
  });

  test("has varying power samples in order of time, within the limits of the GPUs", () => {
    const times = power.map(({ recordedAt }) => recordedAt);
    expect(times).toEqual(times.toSorted((a, b) => a - b));
    const draws = power.map(({ readings }) => readings.reduce((sum, one) => sum + (one.powerDrawW ?? 0), 0));
    expect(power.every(({ readings }) => readings.length === gpuCount)).toBeTrue();
    expect(Math.max(...draws)).toBeLessThan(gpuCount * 710);
    expect(Math.max(...draws)).toBeGreaterThan(2 * Math.min(...draws));
  });

  test("live requests continue the current minute where the history ends", () => {
    const minute = minuteOf(now);
    const whole = generateHistory(keys, (minute + 1) * 60_000).counts.filter((count) => count.minute === minute);
    expect(whole.length).toBeGreaterThan(2);
    for (const { keyId, ...sums } of whole) {
      const past = counts.find((count) => count.keyId === keyId && count.minute === minute);
      const traffic = keys[keyId - 1]?.traffic;
      const live = traffic === undefined ? [] : plannedRequests(traffic, minute, keyId - 1);
      const after = live.filter(({ startsAt }) => startsAt >= now);
      const total = (field: "inputTokens" | "outputTokens"): number =>
        after.reduce((sum, request) => sum + request[field], past?.[field] ?? 0);
      expect([after.length + (past?.requestCount ?? 0), total("inputTokens"), total("outputTokens")]).toEqual([
        sums.requestCount,
        sums.inputTokens,
        sums.outputTokens,
      ]);
    }
  });

  test("the power of a live minute is that of the history", () => {
    const { recordedAt, readings } = power.at(-1) ?? { recordedAt: 0, readings: [] };
    const host = advanceGpuHost(idleGpuHost(gpuCount), loadInMinute(keys, minuteOf(recordedAt)), recordedAt, 600_000);
    const live = readGpus(host, recordedAt).map(({ powerDrawW }) => powerDrawW);
    expect(live).toEqual(readings.map(({ powerDrawW }) => powerDrawW));
  });
});
