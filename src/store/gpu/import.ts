import type { GpuReading } from "../../domain/gpu.ts";
import type { Engine } from "../engine/engine.ts";
import { measures } from "./minutes-and-hours.ts";
import type { GpuHour, GpuPast } from "./past.ts";

const sumFields = measures.flatMap(({ name }) => [`${name}Sum`, `${name}Count`, `${name}Max`, `${name}Last`]);

/** Inserts what was measured before; within a transaction. */
export function prepareGpuImport(engine: Engine): (past: GpuPast) => Promise<void> {
  const { gpuHour, gpuMinute, gpuPowerMinute } = engine.tables;
  const insertHours = engine.prepareInsert(gpuHour, ["hour", "gpuId", ...sumFields]);
  const insertReadings = engine.prepareInsert(gpuMinute, ["minute", "gpuId", ...sumFields]);
  const insertMinutes = engine.prepareInsert(gpuPowerMinute, ["minute", "powerDrawW", "meanPowerDrawW"]);
  return async ({ hours, minutes }) => {
    await engine.pipeline([
      insertHours(hours.map(valuesOfHour)),
      insertReadings(minutes.flatMap(({ minute, readings }) => readings.map((one) => valuesOfReading(minute, one)))),
      insertMinutes(minutes.map(({ minute, powerW }) => [minute, powerW, powerW])),
    ]);
  };
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
