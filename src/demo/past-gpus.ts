import { readGpus } from "./gpu-host.ts";
import type { Engine } from "../store/engine/engine.ts";
import { measures } from "../store/gpu/minutes-and-hours.ts";
import { minutesPerDay, minutesPerHour, msPerMinute } from "../time/seoul.ts";
import type { GpuReading } from "../domain/gpu.ts";

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
  const minutes = Array.from({ length: to - from }, (_, index) => {
    const minute = from + index;
    const readings = readGpus(loadIn(minute), minute * msPerMinute);
    return { minute, powerW: readings.reduce((sum, { powerDrawW }) => sum + (powerDrawW ?? 0), 0), readings };
  });
  const hours = Array.from(
    Map.groupBy(minutes, ({ minute }) => Math.floor(minute / minutesPerHour)),
    ([hour, own]) => ({ hour, readings: own.flatMap(({ readings }) => readings) }),
  );
  return {
    hours: hours.filter(({ hour }) => (hour + 1) * minutesPerHour <= to),
    minutes: minutes.map((one) => Object.assign(one, to - one.minute > readingMinutes && { readings: [] })),
  };
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
