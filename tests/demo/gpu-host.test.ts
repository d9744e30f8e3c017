import { expect, test } from "bun:test";
import { gpuCount, readGpus } from "../../src/demo/gpu-host.ts";

const first = (load: number) => {
  const [reading] = readGpus(load, 0);
  return { utilization: reading?.utilizationPct, power: reading?.powerDrawW ?? -1, celsius: reading?.tempC ?? -1 };
};

test("an idle host is cool and draws little power, a busy one is hot and draws much", () => {
  const [idle, busy] = [first(0), first(0.9)];
  expect(idle.utilization).toBe(0);
  expect(idle.power).toBeWithin(60, 100);
  expect(idle.celsius).toBeWithin(25, 40);
  expect(busy.utilization).toBeGreaterThan(75);
  expect(busy.power).toBeGreaterThan(500);
  expect(busy.celsius).toBeGreaterThan(55);
});

test("readings stay within the API's limits at any load", () => {
  for (const load of [0, 0.01, 0.5, 1]) {
    for (let second = 1; second <= 120; second++) {
      for (const reading of readGpus(load, second * 1000)) {
        expect(reading.utilizationPct).toBeWithin(0, 101);
        expect(reading.powerDrawW).toBeWithin(0, 760);
        expect(reading.tempC).toBeWithin(20, 90);
        expect(reading.memoryUsedMb).toBeLessThanOrEqual(reading.memoryTotalMb ?? 0);
        expect(Number.isInteger(reading.tempC) && Number.isInteger(reading.memoryUsedMb)).toBe(true);
      }
    }
  }
});

test("the GPUs of a host have different ids and different power readings", () => {
  const readings = readGpus(0.6, 60_000);
  expect(readings.map(({ gpuId }) => gpuId)).toEqual(Array.from({ length: gpuCount }, (_, index) => index));
  expect(new Set(readings.map(({ powerDrawW }) => powerDrawW)).size).toBeGreaterThan(2);
});
