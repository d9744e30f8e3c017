import { TypeCompiler } from "@sinclair/typebox/compiler";
import { timestampOf } from "../time/seoul.ts";
import type { GpuReading } from "../domain.ts";
import type { GpuSample } from "../store/store.ts";
import type { JsonObject } from "./body.ts";
import { ApiError } from "./errors.ts";
import { gpuEntry, type GpuSampleBody } from "./schemas.ts";

const maxNameCodePoints = 64;
const entryCheck = TypeCompiler.Compile(gpuEntry);

/**
 * The readings of one POST. An entry with a field out of bounds or of a wrong type is skipped, without a word, as the
 * contract has it; null counts as not sent, which is what hosts report for a sensor that they lack. Of several entries
 * for one GPU the last valid one counts, so there are at most 256.
 * @returns the readings, and how many entries are not among them
 * @throws ApiError 400 where there is no `gpus` array
 */
export function parseGpuReadings({ gpus }: JsonObject): { readings: GpuReading[]; skipped: number } {
  if (!Array.isArray(gpus)) throw new ApiError(400, "gpus must be an array");
  const readings = new Map<number, GpuReading>();
  for (const entry of gpus as unknown[]) {
    const reading = findReading(entry);
    if (reading !== undefined) readings.set(reading.gpuId, reading);
  }
  return { readings: [...readings.values()], skipped: gpus.length - readings.size };
}

function findReading(entry: unknown): GpuReading | undefined {
  if (!entryCheck.Check(entry) || !isName(entry.name)) return undefined;
  return {
    gpuId: withoutSign(entry.gpu_id),
    name: entry.name.toWellFormed(),
    powerDrawW: withoutSign(entry.power_draw_w),
    tempC: withoutSign(entry.temp_c),
    memoryUsedMb: withoutSign(entry.memory_used_mb),
    memoryTotalMb: withoutSign(entry.memory_total_mb),
    utilizationPct: withoutSign(entry.utilization_pct),
  };
}

/** JSON has a negative zero, and its bounds let it pass. */
function withoutSign(value: number): number;
function withoutSign(value: number | null | undefined): number | null;
function withoutSign(value: number | null | undefined): number | null {
  return typeof value === "number" ? value + 0 : null;
}

/** A null character: see the key's name. */
const isName = (text: string) =>
  text.length <= 2 * maxNameCodePoints && Array.from(text).length <= maxNameCodePoints && !text.includes("\0");

export function gpuSampleBody(sample: GpuSample): GpuSampleBody {
  return {
    id: sample.id,
    recorded_at: timestampOf(sample.recordedAt),
    gpu_id: sample.gpuId,
    name: sample.name,
    power_draw_w: sample.powerDrawW,
    temp_c: sample.tempC,
    memory_used_mb: sample.memoryUsedMb,
    memory_total_mb: sample.memoryTotalMb,
    utilization_pct: sample.utilizationPct,
  };
}
