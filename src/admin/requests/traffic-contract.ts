import { type Outcome, outcomes } from "../../domain/requests.ts";
import { type Static, type TInteger, type TOptional, Type as t } from "@sinclair/typebox";
import * as schema from "../http/schemas.ts";

const hours = schema.integerParameter("hours", { minimum: 1, maximum: 720, default: 24 });
const bucketMinutes = (): TInteger =>
  schema.integerParameter("bucket_minutes", { minimum: 1, maximum: 1440, default: 5 });

const widenedMinutes = t.Integer({
  description: "The width of the buckets: as asked for, and rounded up to whole hours in windows above 48 hours",
});

const latencyQuery = t.Object({
  hours,
  bucket_minutes: bucketMinutes(),
  by: schema.choice("by", ["all", "model"], "all"),
  model: schema.textParameter("model", 200, "Exact"),
});
export type LatencyQuery = Static<typeof latencyQuery>;

const quantiles = t.Object({
  count: schema.count,
  p1: t.Number(),
  p5: t.Number(),
  p50: t.Number(),
  p95: t.Number(),
  p99: t.Number(),
});
export type Quantiles = Static<typeof quantiles>;
const latencies = {
  model: schema.nullable(t.String()),
  request_count: schema.count,
  first_byte_ms: schema.nullable(quantiles),
  duration_ms: schema.nullable(quantiles),
  tokens_per_second: schema.nullable(quantiles),
  queue_wait_ms: schema.nullable(quantiles),
};
const latencyTotal = t.Object(latencies);
export type LatencyTotal = Static<typeof latencyTotal>;
const latencyBody = t.Object({
  hours: t.Integer(),
  bucket_minutes: widenedMinutes,
  by: t.String(),
  points: t.Array(t.Object({ bucket_start: schema.timestamp, ...latencies })),
  totals: t.Array(latencyTotal, { description: "Of the whole time" }),
});
export type LatencyBody = Static<typeof latencyBody>;

const failuresQuery = t.Object({ hours, bucket_minutes: bucketMinutes(), key_id: schema.keyParameter });
export type FailuresQuery = Static<typeof failuresQuery>;
const failuresBody = t.Object({
  hours: t.Integer(),
  bucket_minutes: widenedMinutes,
  points: t.Array(
    t.Object({
      bucket_start: schema.timestamp,
      request_count: t.Integer({ minimum: 0, description: "All that ended, refused ones too" }),
      failed_count: t.Integer({ minimum: 0, description: "Without those whose clients left" }),
      outcomes: t.Object(
        Object.fromEntries(outcomes.map((name) => [name, t.Optional(schema.count)])) as Record<
          Outcome,
          TOptional<TInteger>
        >,
      ),
    }),
  ),
  rows: t.Array(
    t.Object({
      outcome: t.String(),
      code: t.String({ description: "An error code, a cause, or such as `status_429` for an error of the backend" }),
      key_id: schema.keyAndModel.key_id,
      key_name: schema.keyAndModel.key_name,
      count: schema.count,
      last_at: schema.timestamp,
    }),
    { description: "Failures, most first, at most 200" },
  ),
});
export type FailuresBody = Static<typeof failuresBody>;

export const getLatency = schema.takesQuery(
  "Times to the first byte, durations and output speed per time bucket; at most 5 % off",
  latencyQuery,
  latencyBody,
);
export const listFailures = schema.takesQuery(
  "How requests ended per time bucket, and failures by outcome, code and key",
  failuresQuery,
  failuresBody,
);
