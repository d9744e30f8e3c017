import {
  Kind,
  type Static,
  type TInteger,
  type TNull,
  type TSchema,
  type TUnion,
  type TUnsafe,
  Type as t,
} from "@sinclair/typebox";

/**
 * A request body's shape, for the types and the OpenAPI document only. The handler validates the body itself, because
 * the specification fixes the order and the wording of the errors, counts code points, and skips single GPU entries.
 */
export const describes = <S extends TSchema>(schema: S): TUnsafe<Static<S>> =>
  t.Unsafe<Static<S>>({ ...schema, [Kind]: "Any" });

export const nullable = <S extends TSchema>(schema: S): TUnion<[S, TNull]> => t.Union([schema, t.Null()]);
export const timestamp = t.String({ format: "date-time", description: "ISO 8601 with the offset of Asia/Seoul" });
export const count = t.Integer({ minimum: 0 });
export const csrfField = t.Optional(t.String({ description: "Alternative to the header X-CSRF-Token" }));

export const errorBody = t.Object({ error: t.String() });
export const okBody = t.Object({ ok: t.Literal(true) });
export type OkBody = Static<typeof okBody>;

export const loginRequest = describes(t.Object({ username: t.String(), password: t.String() }));
export const loginBody = t.Object({ ok: t.Literal(true), username: t.String(), csrf_token: t.String() });
export type LoginBody = Static<typeof loginBody>;
export const meBody = t.Object({ authenticated: t.Literal(true), username: t.String(), csrf_token: t.String() });
export type MeBody = Static<typeof meBody>;
export const anonymousBody = t.Object({ authenticated: t.Literal(false) });
export type AnonymousBody = Static<typeof anonymousBody>;

const keyName = t.String({
  minLength: 1,
  maxLength: 120,
  // Something else than white space, and no null character.
  pattern: "^[^\\u0000]*[^\\u0000\\s][^\\u0000]*$",
  description: "Trimmed, then counted in code points",
});
export const newKeyRequest = describes(
  t.Object({
    name: keyName,
    key: t.Optional(t.String({ minLength: 1, maxLength: 512, pattern: "^[\\x21-\\x7e]+$" })),
    _csrf: csrfField,
  }),
);
export const keyChangeRequest = describes(
  t.Object(
    { name: t.Optional(keyName), is_active: t.Optional(t.Boolean()), _csrf: csrfField },
    { anyOf: [{ required: ["name"] }, { required: ["is_active"] }] },
  ),
);
export const keyBody = t.Object({
  id: t.Integer(),
  key: t.String({ description: "In full in the response that creates it, masked everywhere else" }),
  name: t.String(),
  is_active: t.Boolean(),
  created_at: timestamp,
  last_used_at: nullable(timestamp),
  total_request_count: count,
  total_input_tokens: count,
  total_output_tokens: count,
});
export type KeyBody = Static<typeof keyBody>;

const usageSum = { request_count: count, input_tokens: count, output_tokens: count };
const usageOfKey = { key_id: t.Integer(), key_name: t.String(), ...usageSum };

export const usageTotal = t.Object({ ...usageSum, total_tokens: count });
export type UsageTotal = Static<typeof usageTotal>;
export const usageSummary = t.Object({ date: t.String({ format: "date" }), ...usageTotal.properties });
export type UsageSummary = Static<typeof usageSummary>;
export const dailyUsage = t.Array(t.Object({ date: t.String({ format: "date" }), ...usageOfKey }));
export const usageHistory = t.Object({
  days: t.Integer(),
  bucket_minutes: t.Integer(),
  points: t.Array(t.Object({ bucket_start: timestamp, ...usageOfKey })),
});

/** Optional for clients, always present for handlers: Elysia fills in the default. */
export const integerParameter = (
  name: string,
  range: { minimum: number; maximum: number; default: number },
): TInteger =>
  t.Optional(
    t.Integer({ ...range, error: `${name} must be an integer from ${range.minimum} to ${range.maximum}` }),
  ) as TInteger;

export const dailyQuery = t.Object({ days: integerParameter("days", { minimum: 7, maximum: 365, default: 90 }) });
export type DailyQuery = Static<typeof dailyQuery>;
export const historyQuery = t.Object({
  days: integerParameter("days", { minimum: 1, maximum: 30, default: 7 }),
  bucket_minutes: integerParameter("bucket_minutes", { minimum: 1, maximum: 1440, default: 5 }),
});
export type HistoryQuery = Static<typeof historyQuery>;

const orNull = <S extends TSchema>(schema: S) => t.Optional(nullable(schema));

export const gpuEntry = t.Object({
  gpu_id: t.Integer({ minimum: 0, maximum: 255 }),
  name: t.String({ description: "At most 64 code points" }),
  power_draw_w: orNull(t.Number({ minimum: 0, maximum: 10_000 })),
  temp_c: orNull(t.Integer({ minimum: 0, maximum: 150 })),
  memory_used_mb: orNull(t.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
  memory_total_mb: orNull(t.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
  utilization_pct: orNull(t.Integer({ minimum: 0, maximum: 100 })),
});
export const gpuSamplesRequest = describes(
  t.Object({
    gpus: t.Array(gpuEntry, {
      description: "Invalid entries are skipped; the last valid entry for a gpu_id counts",
    }),
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
});
export type GpuSampleBody = Static<typeof gpuSample>;
export const powerHistory = t.Object({
  days: t.Integer(),
  bucket_minutes: t.Integer(),
  points: t.Array(t.Object({ recorded_at: timestamp, power_draw_w: t.Number() })),
});

export const overviewBody = t.Object({
  now: timestamp,
  today: usageTotal,
  yesterday: t.Object(usageTotal.properties, { description: "Yesterday up to the same minute of the day" }),
  last_minute: t.Object(usageTotal.properties, { description: "The last whole minute" }),
  active_keys: count,
  in_flight: count,
  separate_ports: t.Boolean({ description: "ADMIN_PORT is set: /v1 is not served at this address" }),
  gpus: t.Array(
    t.Object({
      gpu_id: t.Integer(),
      name: t.String(),
      recorded_at: timestamp,
      power_draw_w: nullable(t.Number()),
      utilization_pct: nullable(t.Integer()),
      stale: t.Boolean({ description: "No sample for 2 minutes; not included in power_draw_w" }),
    }),
  ),
  power_draw_w: nullable(t.Number({ description: "Sum over the GPUs that report; null if none does" })),
  upstream: t.Object({ ok: t.Boolean(), checked_at: timestamp }),
});
export type OverviewBody = Static<typeof overviewBody>;

export const healthBody = t.Object({ status: t.Literal("ok") });
export type HealthBody = Static<typeof healthBody>;
export const readinessBody = t.Object({
  status: t.Union([t.Literal("ready"), t.Literal("unavailable")]),
  database: t.Union([t.Literal("ok"), t.Literal("not writable")]),
  upstream: t.Union([t.Literal("ok"), t.Literal("not answering")]),
  counts: t.Union([t.Literal("ok"), t.Literal("waiting"), t.Literal("partly refused")], {
    description:
      "Whether the usage of requests is written, waits for the database, or contains numbers that it refuses",
  }),
});
export type ReadinessBody = Static<typeof readinessBody>;
export const metricsText = t.String({ description: "Prometheus text format" });
