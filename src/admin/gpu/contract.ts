import { historyQuery } from "../usage/contract.ts";
import { type Static, type TSchema, Type as t } from "@sinclair/typebox";
import { nullable, okBody, timestamp, responds, takesQuery, takesBody } from "../http/schemas.ts";
import { checkedBy, hasAtMost, text } from "../http/body-schema.ts";
import * as usage from "../usage/contract.ts";

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

const maxNameLength = 64;
/** Without null characters, which PostgreSQL cannot store in text. */
const isName = (value: unknown): boolean =>
  typeof value === "string" && hasAtMost(maxNameLength, value) && !value.includes("\0");

export const gpuEntry = t.Object({
  gpu_id: t.Integer(gpuIds),
  name: checkedBy(
    (value) => (isName(value) ? undefined : "name is invalid"),
    t.String({ description: `At most ${maxNameLength} code points` }),
  ),
  power_draw_w: orNull(t.Number({ minimum: 0, maximum: 10_000 })),
  temp_c: orNull(t.Integer({ minimum: 0, maximum: 150 })),
  memory_used_mb: orNull(t.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
  memory_total_mb: orNull(t.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
  utilization_pct: orNull(t.Integer({ minimum: 0, maximum: 100 })),
});
/** Accepts any entries, because the route skips invalid ones. */
export const gpuSamplesRequest = t.Object({
  gpus: checkedBy(
    (value) => (Array.isArray(value) ? undefined : "gpus must be an array"),
    t.Array(gpuEntry, { description: "Invalid entries are skipped; the last valid entry for a gpu_id counts" }),
  ),
  host: orNull(text("host", { maxLength: 64, description: "Names the sender" })),
});
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

/** Measures one GPU; absent from the points of all GPUs. */
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

export const getPushGpuScript = {
  response: { 200: t.String({ description: "POSIX shell" }) },
  detail: { summary: "A shell script that sends GPU samples to this server" },
};

export const addGpuSamples = takesBody("Store the samples of a GPU host", gpuSamplesRequest, { 200: okBody }, 429);
export const listGpuSamples = responds("The latest sample of each GPU, by gpu_id", t.Array(gpuSample));
export const listPowerHistory = takesQuery(
  "The highest total power draw of all GPUs per time bucket",
  usage.historyQuery,
  powerHistory,
);
export const listGpuHistory = takesQuery(
  "Mean power and energy of all GPUs, or every measure of one, per time bucket with a reading",
  gpuHistoryQuery,
  gpuHistory,
);
