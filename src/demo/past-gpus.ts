import { advanceGpuHost, idleGpuHost, readGpus } from "./gpu-host.ts";
import type { Engine } from "../store/engine/engine.ts";
import { measures } from "../store/gpu/minutes-and-hours.ts";
import { minutesPerDay, minutesPerHour, msPerMinute } from "../time/seoul.ts";
import type { GpuReading } from "../domain/gpu.ts";

export const gpuCount = 4;

/** What GPUs measured before the demo began, which no push brings. */
export interface GpuPast {
  /** With the readings of each minute that the hour has. */
  hours: readonly { hour: number; readings: readonly GpuReading[] }[];
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
  const hours: { hour: number; readings: GpuReading[] }[] = [];
  let hour: GpuReading[] = [];
  for (let minute = from; minute < to; minute++) {
    const at = minute * msPerMinute;
    host = advanceGpuHost(host, loadIn(minute), at, msPerMinute);
    const readings = readGpus(host, at);
    hour.push(...readings);
    const powerW = readings.reduce((sum, { powerDrawW }) => sum + (powerDrawW ?? 0), 0);
    minutes.push({ minute, powerW, readings: to - minute > readingMinutes ? [] : readings });
    if ((minute + 1) % minutesPerHour === 0) {
      hours.push({ hour: Math.floor(minute / minutesPerHour), readings: hour });
      hour = [];
    }
  }
  return { hours, minutes };
}

const sumFields = measures.flatMap(({ name }) => [`${name}Sum`, `${name}Count`, `${name}Max`, `${name}Last`]);

/** Writes hours and minutes that nothing was stored for. Pushes must come later. */
export async function writePastGpus(engine: Engine, { hours, minutes }: GpuPast): Promise<void> {
  const { gpuHour, gpuMinute, gpuPowerMinute } = engine.tables;
  const insertHours = engine.prepareInsert(gpuHour, ["hour", "gpuId", ...sumFields]);
  const insertReadings = engine.prepareInsert(gpuMinute, ["minute", "gpuId", ...sumFields]);
  const insertMinutes = engine.prepareInsert(gpuPowerMinute, ["minute", "powerDrawW", "meanPowerDrawW"]);
  await engine.transaction(() =>
    engine.pipeline([
      insertHours(hours.flatMap(({ hour, readings }) => rowsOf(hour, readings))),
      insertReadings(minutes.flatMap(({ minute, readings }) => rowsOf(minute, readings))),
      insertMinutes(minutes.map(({ minute, powerW }) => [minute, powerW, powerW])),
    ]),
  );
}

const fields = { power: "powerDrawW", temp: "tempC", memory: "memoryUsedMb", utilization: "utilizationPct" } as const;

/** A row for each GPU of a minute or an hour. */
const rowsOf = (period: number, readings: readonly GpuReading[]): number[][] =>
  Array.from(
    Map.groupBy(readings, ({ gpuId }) => gpuId),
    ([gpuId, own]) => [
      period,
      gpuId,
      ...measures.flatMap(({ name }) => {
        const values = own.map((reading) => reading[fields[name]] ?? 0);
        return [values.reduce((sum, value) => sum + value, 0), values.length, Math.max(...values), values.at(-1) ?? 0];
      }),
    ],
  );
