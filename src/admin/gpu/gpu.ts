// Samples of GPUs: the latest ones and their history (here), and posts of their hosts (`posted-samples.ts`).
//
// It keeps true: an entry that cannot be read is skipped and counted, and costs the others of its post nothing. The
// time of a sample is the server's. Posts are limited by key, and whoever has one can fill neither the log nor the
// memory with names of hosts. How samples are read is not known here.

import type { AdminDeps } from "../http/deps.ts";
import { streamHistory } from "../http/json-stream.ts";
import { type HistoryQuery, historyQuery } from "../usage/contract.ts";
import * as schema from "../http/schemas.ts";
import { bucketRange } from "../usage/ranges.ts";
import { gpuIds } from "./posted-samples.ts";
import { type Static, Type as t } from "@sinclair/typebox";

const gpuHistoryQuery = t.Object({
  ...historyQuery.properties,
  gpu_id: t.Optional(
    t.Integer({
      ...gpuIds,
      description: "One GPU instead of all together",
      error: `gpu_id must be an integer from ${gpuIds.minimum} to ${gpuIds.maximum}`,
    }),
  ),
});
type GpuHistoryQuery = Static<typeof gpuHistoryQuery>;

const gpuSample = t.Object({
  id: t.Integer(),
  recorded_at: schema.timestamp,
  gpu_id: t.Integer(),
  name: t.String(),
  power_draw_w: schema.nullable(t.Number()),
  temp_c: schema.nullable(t.Integer()),
  memory_used_mb: schema.nullable(t.Integer()),
  memory_total_mb: schema.nullable(t.Integer()),
  utilization_pct: schema.nullable(t.Integer()),
  host: schema.nullable(t.String({ description: "The sender; null if it sent no name" })),
  other_host: schema.nullable(
    t.String({ description: "Another host that sent this gpu_id within the last two minutes" }),
  ),
});
type GpuSampleBody = Static<typeof gpuSample>;
const powerHistory = t.Object({
  days: t.Integer(),
  bucket_minutes: t.Integer(),
  points: t.Array(t.Object({ recorded_at: schema.timestamp, power_draw_w: t.Number() })),
});

/** Measures one GPU; absent from the points of all GPUs. */
const ofOneGpu = (type: typeof t.Number | typeof t.Integer = t.Integer) => t.Optional(schema.nullable(type()));
const measure = <Name extends string>(name: Name) =>
  ({ [name]: ofOneGpu(t.Number), [`${name}_max`]: ofOneGpu(), [`${name}_last`]: ofOneGpu() }) as Record<
    Name | `${Name}_max` | `${Name}_last`,
    ReturnType<typeof ofOneGpu>
  >;
const gpuHistory = t.Object({
  days: t.Integer(),
  bucket_minutes: t.Integer(),
  points: t.Array(
    t.Object({
      bucket_start: schema.timestamp,
      measured_minutes: t.Integer({ minimum: 0, description: "Minutes with a power reading" }),
      power_draw_w: schema.nullable(
        t.Number({ description: "Mean over the measured minutes of the sum over GPUs of each GPU's mean" }),
      ),
      energy_wh: schema.nullable(t.Number({ description: "power_draw_w times measured_minutes" })),
      power_draw_w_max: ofOneGpu(t.Number),
      power_draw_w_last: ofOneGpu(t.Number),
      ...measure("temp_c"),
      ...measure("memory_used_mb"),
      ...measure("utilization_pct"),
    }),
  ),
});

export const gpuSamplesContract = schema.responds("The latest sample of each GPU, by gpu_id", t.Array(gpuSample));
export const powerHistoryContract = schema.takesQuery(
  "The highest total power draw of all GPUs per time bucket",
  historyQuery,
  powerHistory,
);
export const gpuHistoryContract = schema.takesQuery(
  "Mean power and energy of all GPUs, or every measure of one, per time bucket with a reading",
  gpuHistoryQuery,
  gpuHistory,
);

export const listGpuSamples =
  ({ store }: AdminDeps) =>
  async (): Promise<GpuSampleBody[]> =>
    (await store.gpu.latest()).map(schema.apiBody);

export const listPowerHistory =
  ({ store, clock, log }: AdminDeps) =>
  ({ query, request }: { query: HistoryQuery; request: Request }): Promise<Response> =>
    streamHistory(request, query, store.gpu.powerHistory(bucketRange(clock(), query)), log);

export const listGpuHistory =
  ({ store, clock, log }: AdminDeps) =>
  ({ query, request }: { query: GpuHistoryQuery; request: Request }): Promise<Response> =>
    streamHistory(request, query, store.gpu.history(bucketRange(clock(), query), query.gpu_id), log);
