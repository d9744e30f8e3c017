import { type Static, type TInteger, Type as t } from "@sinclair/typebox";
import { change } from "./contract.ts";
import { count, csrfField, describes, integerParameter, nullable, timestamp } from "../http/schemas.ts";

const keyParameter = t.Optional(
  t.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, error: "key_id must be an integer of at least 1" }),
);
const modelParameter = t.Optional(
  t.String({ maxLength: 200, error: "model must have at most 200 characters", description: "Exact" }),
);

const choice = <const T extends string>(name: string, values: readonly T[], byDefault: NoInfer<T>) =>
  t.Unsafe<T>(
    t.Optional(
      t.Union(
        values.map((value) => t.Literal(value)),
        { default: byDefault, error: `${name} must be one of ${values.join(", ")}` },
      ),
    ),
  );

export const modelUsageQuery = t.Object({
  days: integerParameter("days", { minimum: 1, maximum: 365, default: 30 }),
  by: choice("by", ["model", "key", "key_model"], "model"),
  bucket: choice("bucket", ["none", "hour", "day"], "none"),
  key_id: keyParameter,
  model: modelParameter,
});
export type ModelUsageQuery = Static<typeof modelUsageQuery>;

const keyAndModel = {
  key_id: nullable(t.Integer()),
  key_name: nullable(t.String()),
  model: nullable(
    t.String({
      description:
        "Empty: the requests named none. `other`: beyond 200 names of a key and day; of responses without tokens, beyond 50 of a key and hour",
    }),
  ),
};

export const modelUsageBody = t.Object({
  days: t.Integer(),
  by: t.String(),
  bucket: t.String(),
  currency: nullable(t.String()),
  rows: t.Array(
    t.Object({
      bucket_start: nullable(timestamp),
      ...keyAndModel,
      request_count: count,
      input_tokens: count,
      cached_input_tokens: count,
      output_tokens: count,
      reasoning_tokens: count,
      cost: nullable(t.Number({ description: "Of the tokens whose price is known; null if there are none" })),
      cost_is_partial: t.Boolean({
        description: "Some of the tokens are not in the cost: they have no price, or are of more models than are read",
      }),
    }),
    { description: "Most tokens first; with a bucket, oldest first" },
  ),
  more: t.Boolean({
    description:
      "There are more rows: listed are those with the most tokens; with a bucket, those of the latest periods",
  }),
});
export type ModelUsageBody = Static<typeof modelUsageBody>;

const hours = integerParameter("hours", { minimum: 1, maximum: 720, default: 24 });
const bucketMinutes = (): TInteger => integerParameter("bucket_minutes", { minimum: 1, maximum: 1440, default: 5 });

export const tokenlessQuery = t.Object({ hours });
export const tokenlessBody = t.Object({
  hours: t.Integer(),
  force_stream_usage: t.String(),
  request_count: count,
  streamed_count: count,
  rows: t.Array(t.Object({ ...keyAndModel, path: t.String(), request_count: count, streamed_count: count }), {
    description: "Most first, at most 100",
  }),
});
export type TokenlessBody = Static<typeof tokenlessBody>;

export const latencyQuery = t.Object({
  hours,
  bucket_minutes: bucketMinutes(),
  by: choice("by", ["all", "model"], "all"),
  model: modelParameter,
});
export type LatencyQuery = Static<typeof latencyQuery>;

const quantiles = t.Object({
  count,
  p1: t.Number(),
  p5: t.Number(),
  p50: t.Number(),
  p95: t.Number(),
  p99: t.Number(),
});
export type Quantiles = Static<typeof quantiles>;
const latencies = {
  model: nullable(t.String()),
  request_count: count,
  first_byte_ms: nullable(quantiles),
  duration_ms: nullable(quantiles),
  tokens_per_second: nullable(quantiles),
};
const latencyTotal = t.Object(latencies);
export type LatencyTotal = Static<typeof latencyTotal>;
export const latencyBody = t.Object({
  hours: t.Integer(),
  bucket_minutes: t.Integer(),
  by: t.String(),
  points: t.Array(t.Object({ bucket_start: timestamp, ...latencies })),
  totals: t.Array(latencyTotal, { description: "Of the whole time" }),
});
export type LatencyBody = Static<typeof latencyBody>;

export const failuresQuery = t.Object({ hours, bucket_minutes: bucketMinutes(), key_id: keyParameter });
export type FailuresQuery = Static<typeof failuresQuery>;
export const failuresBody = t.Object({
  hours: t.Integer(),
  bucket_minutes: t.Integer(),
  points: t.Array(
    t.Object({
      bucket_start: timestamp,
      request_count: t.Integer({ minimum: 0, description: "All that ended, refused ones too" }),
      failed_count: count,
      outcomes: t.Object({
        completed: t.Optional(count),
        client_left: t.Optional(count),
        shutdown: t.Optional(count),
        upstream_failed: t.Optional(count),
        timed_out: t.Optional(count),
        refused: t.Optional(count),
        revoked: t.Optional(count),
        ended_by_admin: t.Optional(count),
      }),
    }),
  ),
  rows: t.Array(
    t.Object({
      outcome: t.String(),
      code: t.String({ description: "An error code, a cause, or such as `status_429` for an error of the backend" }),
      key_id: keyAndModel.key_id,
      key_name: keyAndModel.key_name,
      count,
      last_at: timestamp,
    }),
    { description: "Failures, most first, at most 200" },
  ),
});
export type FailuresBody = Static<typeof failuresBody>;

const day = t.String({ format: "date" });
const price = t.Number({ minimum: 0, maximum: 1_000_000_000 });
export const pricesBody = t.Object({
  currency: nullable(t.String({ pattern: "^[A-Z]{3}$" })),
  models: t.Array(
    t.Object({
      pattern: t.String({ minLength: 1, maxLength: 200, description: "A model name; `*` stands for any characters" }),
      valid_from: day,
      input: t.Number({ minimum: 0, maximum: 1_000_000_000, description: "For a million tokens, like the others" }),
      cached_input: nullable(price),
      output: price,
    }),
    { maxItems: 500 },
  ),
  energy: t.Array(t.Object({ valid_from: day, per_kwh: price }), { maxItems: 100 }),
});
export type PricesBody = Static<typeof pricesBody>;
export const pricesRequest = describes(t.Object({ ...t.Partial(pricesBody).properties, _csrf: csrfField }));

export const reconciliationQuery = t.Object({
  days: integerParameter("days", { minimum: 1, maximum: 90, default: 30 }),
});
export const reconciliationBody = t.Object({
  days: t.Integer(),
  source: nullable(t.String({ description: "`vllm` or `sglang`; null if the backend has no such metrics" })),
  checked_at: nullable(timestamp),
  rows: t.Array(
    t.Object({
      date: day,
      generated_tokens: count,
      counted_output_tokens: count,
      difference: t.Integer({ description: "Generated less counted: responses that were cut, or without usage" }),
      prompt_tokens: count,
      counted_input_tokens: count,
      is_drifting: t.Boolean({ description: "More than 5 % and 10,000 tokens apart" }),
    }),
    { description: "Latest day first" },
  ),
});
export type ReconciliationBody = Static<typeof reconciliationBody>;

export const explainRequest = describes(
  t.Object({ path: t.String({ pattern: "^/v1/[^?#]*$", maxLength: 2000 }), body: t.String(), _csrf: csrfField }),
);
export const explainBody = t.Object({
  refused: nullable(t.String({ description: "The code of the error that the client would get" })),
  changed: t.Boolean(),
  body: t.String({ description: "As it would be sent" }),
  stream: t.Boolean(),
  model: nullable(t.Object({ asked: t.String(), sent: t.String() })),
  edits: t.Array(t.Object({ what: change, from: nullable(t.String()), to: nullable(t.String()), why: t.String() })),
});
export type ExplainBody = Static<typeof explainBody>;
