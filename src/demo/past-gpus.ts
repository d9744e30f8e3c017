import { advanceGpuHost, idleGpuHost, readGpus } from "../simulator/gpu-host.ts";
import type { Engine } from "../store/engine/engine.ts";
import { measures } from "../store/gpu/minutes-and-hours.ts";
import { minutesPerDay, minutesPerHour, msPerMinute } from "../time/seoul.ts";
import type { GpuReading } from "../domain/gpu.ts";

export const gpuCount = 4;

/** What a GPU measured in an hour that is over. */
interface GpuHour extends Record<"power" | "temp" | "memory" | "utilization", GpuHourMeasure> {
  /** Since the epoch. */
  hour: number;
  gpuId: number;
  /** How many minutes of the hour have readings. */
  minutes: number;
}

interface GpuHourMeasure {
  mean: number;
  max: number;
  last: number;
}

/** What GPUs measured before the demo began, which no push brings. */
export interface GpuPast {
  hours: readonly GpuHour[];
  /** With the power of all GPUs together; without readings, single GPUs have only the hour. */
  minutes: readonly { minute: number; powerW: number; readings: readonly GpuReading[] }[];
}

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

const sumFields = measures.flatMap(({ name }) => [`${name}Sum`, `${name}Count`, `${name}Max`, `${name}Last`]);

/** Writes hours and minutes that nothing was stored for. Pushes must come later. */
export async function writePastGpus(engine: Engine, { hours, minutes }: GpuPast): Promise<void> {
  const { gpuHour, gpuMinute, gpuPowerMinute } = engine.tables;
  const insertHours = engine.prepareInsert(gpuHour, ["hour", "gpuId", ...sumFields]);
  const insertReadings = engine.prepareInsert(gpuMinute, ["minute", "gpuId", ...sumFields]);
  const insertMinutes = engine.prepareInsert(gpuPowerMinute, ["minute", "powerDrawW", "meanPowerDrawW"]);
  await engine.transaction(() =>
    engine.pipeline([
      insertHours(hours.map(valuesOfHour)),
      insertReadings(minutes.flatMap(({ minute, readings }) => readings.map((one) => valuesOfReading(minute, one)))),
      insertMinutes(minutes.map(({ minute, powerW }) => [minute, powerW, powerW])),
    ]),
  );
}

const valuesOfHour = ({ hour, gpuId, minutes, ...values }: GpuHour): (number | null)[] => [
  hour,
  gpuId,
  ...measures.flatMap(({ name }) => {
    const { mean, max, last } = values[name];
    return [mean * minutes, minutes, max, last];
  }),
];

function valuesOfReading(minute: number, reading: GpuReading): (number | null)[] {
  const { gpuId, powerDrawW: power, tempC: temp, memoryUsedMb: memory, utilizationPct: utilization } = reading;
  const values = { power, temp, memory, utilization };
  return [
    minute,
    gpuId,
    ...measures.flatMap(({ name }) => {
      const value = values[name];
      return [value ?? 0, value === null ? 0 : 1, value, value];
    }),
  ];
}
