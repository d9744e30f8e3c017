import { type Static, type TSchema, Type as t } from "@sinclair/typebox";
import { describes, notBlank, nullable, timestamp } from "../http/schemas.ts";
import { historyQuery } from "../usage/contract.ts";

const gpuIds = { minimum: 0, maximum: 255 };
export const gpuHistoryQuery = t.Object({
  ...historyQuery.properties,
  gpu_id: t.Optional(
    t.Integer({
      ...gpuIds,
      description: "One GPU instead of all together",
      error: `gpu_id must be an integer from ${gpuIds.minimum} to ${gpuIds.maximum}`,
    }),
  ),
});
export type GpuHistoryQuery = Static<typeof gpuHistoryQuery>;

const orNull = <S extends TSchema>(schema: S) => t.Optional(nullable(schema));

export const gpuEntry = t.Object({
  gpu_id: t.Integer(gpuIds),
  name: t.String({ description: "At most 64 code points" }),
  power_draw_w: orNull(t.Number({ minimum: 0, maximum: 10_000 })),
  temp_c: orNull(t.Integer({ minimum: 0, maximum: 150 })),
  memory_used_mb: orNull(t.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
  memory_total_mb: orNull(t.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
  utilization_pct: orNull(t.Integer({ minimum: 0, maximum: 100 })),
});
const hostLength = { minLength: 1, maxLength: 64 };
export const gpuSamplesRequest = describes(
  t.Object({
    gpus: t.Array(gpuEntry, {
      description: "Invalid entries are skipped; the last valid entry for a gpu_id counts",
    }),
    host: t.Optional(nullable(t.String({ ...hostLength, pattern: notBlank, description: "Names the sender" }))),
  }),
);
export const gpuSample = t.Object({
  id: t.Integer(),
  recorded_at: timestamp,
  gpu_id: t.Integer(),
  name: t.String(),
  power_draw_w: nullable(t.Number()),
  temp_c: nullable(t.Integer()),
  memory_used_mb: nullable(t.Integer()),
  memory_total_mb: nullable(t.Integer()),
  utilization_pct: nullable(t.Integer()),
  host: nullable(t.String({ description: "The sender; null if it sent no name" })),
  other_host: nullable(t.String({ description: "Another host that sent this gpu_id within the last two minutes" })),
});
export type GpuSampleBody = Static<typeof gpuSample>;
export const powerHistory = t.Object({
  days: t.Integer(),
  bucket_minutes: t.Integer(),
  points: t.Array(t.Object({ recorded_at: timestamp, power_draw_w: t.Number() })),
});

/** Of one GPU; absent from the points of all GPUs. */
const ofOneGpu = (type: typeof t.Number | typeof t.Integer = t.Integer) => t.Optional(nullable(type()));
export const gpuHistory = t.Object({
  days: t.Integer(),
  bucket_minutes: t.Integer(),
  points: t.Array(
    t.Object({
      bucket_start: timestamp,
      measured_minutes: t.Integer({ minimum: 0, description: "Minutes with a power reading" }),
      power_draw_w: nullable(
        t.Number({ description: "Mean over the measured minutes of the sum over GPUs of each GPU's mean" }),
      ),
      energy_wh: nullable(t.Number({ description: "power_draw_w times measured_minutes" })),
      power_draw_w_max: ofOneGpu(t.Number),
      power_draw_w_last: ofOneGpu(t.Number),
      temp_c: ofOneGpu(t.Number),
      temp_c_max: ofOneGpu(),
      temp_c_last: ofOneGpu(),
      memory_used_mb: ofOneGpu(t.Number),
      memory_used_mb_max: ofOneGpu(),
      memory_used_mb_last: ofOneGpu(),
      utilization_pct: ofOneGpu(t.Number),
      utilization_pct_max: ofOneGpu(),
      utilization_pct_last: ofOneGpu(),
    }),
  ),
});
