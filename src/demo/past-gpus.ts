import type { GpuReading } from "../domain/gpu.ts";
import { advanceGpuHost, idleGpuHost, readGpus } from "../simulator/gpu-host.ts";
import type { GpuHour, GpuPast } from "../store/gpu/past.ts";
import { minutesPerDay, minutesPerHour, msPerMinute } from "../time/seoul.ts";

export const gpuCount = 4;

/** Charts of single GPUs show minutes for so long; before it, they show hours. */
const readingMinutes = 8 * minutesPerDay;

/**
 * What the GPUs measured in each minute from one (inclusive) to another (exclusive), and in each hour that is over.
 * @param loadIn how busy they were in a minute, 0 to 1
 */
export function pastGpus(from: number, to: number, loadIn: (minute: number) => number): GpuPast {
  let host = idleGpuHost(gpuCount);
  const minutes: { minute: number; powerW: number; readings: GpuReading[] }[] = [];
  const hours: GpuHour[] = [];
  let hour: GpuReading[] = [];
  for (let minute = from; minute < to; minute++) {
    const at = minute * msPerMinute;
    host = advanceGpuHost(host, loadIn(minute), at, msPerMinute);
    const readings = readGpus(host, at);
    hour.push(...readings);
    const powerW = readings.reduce((sum, { powerDrawW }) => sum + (powerDrawW ?? 0), 0);
    minutes.push({ minute, powerW, readings: to - minute > readingMinutes ? [] : readings });
    if ((minute + 1) % minutesPerHour === 0) {
      hours.push(...hourOfEach(Math.floor(minute / minutesPerHour), hour));
      hour = [];
    }
  }
  return { hours, minutes };
}

const hourOfEach = (hour: number, readings: readonly GpuReading[]): GpuHour[] =>
  Array.from({ length: gpuCount }, (_, gpuId) => {
    const own = readings.filter((one) => one.gpuId === gpuId);
    return {
      hour,
      gpuId,
      minutes: own.length,
      power: measureOf(own.map(({ powerDrawW }) => powerDrawW ?? 0)),
      temp: measureOf(own.map(({ tempC }) => tempC ?? 0)),
      memory: measureOf(own.map(({ memoryUsedMb }) => memoryUsedMb ?? 0)),
      utilization: measureOf(own.map(({ utilizationPct }) => utilizationPct ?? 0)),
    };
  });

const measureOf = (values: readonly number[]): GpuHour["power"] => ({
  mean: values.reduce((sum, value) => sum + value, 0) / values.length,
  max: Math.max(...values),
  last: values.at(-1) ?? 0,
});
