import type { Columns } from "./columns.ts";

export function defineGpuTables({ table, integer, real, text, primaryKey }: Columns) {
  const gpuReading = () => ({
    name: text().notNull(),
    powerDrawW: real(),
    tempC: integer(),
    memoryUsedMb: integer(),
    memoryTotalMb: integer(),
    utilizationPct: integer(),
  });

  /** Sums and counts are over the readings that have the value; the mean is the sum by the count. Sums are real, so that none overflows. */
  const gpuSums = () => ({
    powerSum: real().notNull(),
    powerCount: integer().notNull(),
    powerMax: real(),
    powerLast: real(),
    tempSum: real().notNull(),
    tempCount: integer().notNull(),
    tempMax: integer(),
    tempLast: integer(),
    memorySum: real().notNull(),
    memoryCount: integer().notNull(),
    memoryMax: integer(),
    memoryLast: integer(),
    utilizationSum: real().notNull(),
    utilizationCount: integer().notNull(),
    utilizationMax: integer(),
    utilizationLast: integer(),
  });

  return {
    /** `id` is `recordedAt * 256 + gpuId`: unique, and the table is ordered by time without a second index. */
    gpuSamples: table("gpu_samples", { id: integer().primaryKey(), ...gpuReading() }),
    gpuLatest: table("gpu_latest", {
      gpuId: integer().primaryKey(),
      id: integer().notNull(),
      ...gpuReading(),
      /** The sender's name; null if it sent none. */
      host: text(),
      /** When that host began to send this GPU. */
      hostChangedAt: integer(),
      /** The host before it, if that one had begun shortly before: then both send this GPU. */
      otherHost: text(),
    }),
    gpuMinute: table("gpu_minute", { minute: integer().notNull(), gpuId: integer().notNull(), ...gpuSums() }, (t) => [
      primaryKey({ columns: [t.minute, t.gpuId] }),
    ]),
    /** The hours that are over. `powerSum` and `powerCount` are of the means of their minutes, so that energy is exact. */
    gpuHour: table("gpu_hour", { hour: integer().notNull(), gpuId: integer().notNull(), ...gpuSums() }, (t) => [
      primaryKey({ columns: [t.hour, t.gpuId] }),
    ]),
    /** All GPUs together. Kept as long as `gpuMinute`. */
    gpuPowerMinute: table("gpu_power_minute", {
      minute: integer().primaryKey(),
      /** The highest total of one push. */
      powerDrawW: real().notNull(),
      /** The sum of the GPUs' means in this minute; null if none reported its power. */
      meanPowerDrawW: real(),
    }),
  };
}
