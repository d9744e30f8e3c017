import { expect, test } from "bun:test";
import { advanceGpuHost, type GpuHost, idleGpuHost, readGpus } from "../../src/demo/gpu-host.ts";

const secondMs = 1000;

/** The host after that many seconds at one load, sampled each second. */
function run(host: GpuHost, load: number, seconds: number): GpuHost {
  let current = host;
  for (let second = 1; second <= seconds; second++)
    current = advanceGpuHost(current, load, second * secondMs, secondMs);
  return current;
}

const first = (host: GpuHost) => {
  const [reading] = readGpus(host, 0);
  if (reading === undefined) throw new Error("The host has no GPU");
  return { utilization: reading.utilizationPct ?? -1, power: reading.powerDrawW ?? -1, celsius: reading.tempC ?? -1 };
};

test("an idle host is cool and draws little power", () => {
  const { utilization, power, celsius } = first(run(idleGpuHost(8), 0, 300));
  expect(utilization).toBe(0);
  expect(power).toBeWithin(60, 100);
  expect(celsius).toBeWithin(25, 40);
});

test("utilisation and power follow the load quickly, the temperature slowly", () => {
  const soon = first(run(idleGpuHost(1), 0.9, 5));
  const late = first(run(idleGpuHost(1), 0.9, 120));
  expect(soon.utilization).toBeGreaterThan(75);
  expect(soon.power).toBeGreaterThan(500);
  expect(soon.celsius).toBeLessThan(late.celsius - 10);
  const cooled = first(run(run(idleGpuHost(1), 0.9, 120), 0, 6));
  expect(cooled.utilization).toBeLessThan(5);
  expect(cooled.celsius).toBeGreaterThan(50);
});

test("the same arguments give the same host", () => {
  expect(run(idleGpuHost(4), 0.5, 30)).toEqual(run(idleGpuHost(4), 0.5, 30));
});

test("readings stay within the API's limits at any load", () => {
  for (const load of [0, 0.01, 0.5, 1]) {
    let host = idleGpuHost(8);
    for (let second = 1; second <= 120; second++) {
      host = advanceGpuHost(host, load, second * secondMs, secondMs);
      for (const reading of readGpus(host, second * secondMs)) {
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
  const readings = readGpus(run(idleGpuHost(8), 0.6, 60), 60 * secondMs);
  expect(readings.map(({ gpuId }) => gpuId)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  expect(new Set(readings.map(({ powerDrawW }) => powerDrawW)).size).toBeGreaterThan(4);
});
