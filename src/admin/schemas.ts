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
import type { LimitName } from "../domain.ts";
import { limitMaxima } from "./key-fields.ts";

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

const noNullCharacter = "^[^\\u0000]*$";
/** Something else than white space, and no null character. */
const notBlank = "^[^\\u0000]*[^\\u0000\\s][^\\u0000]*$";
const keyName = t.String({
  minLength: 1,
  maxLength: 120,
  pattern: notBlank,
  description: "Trimmed, then counted in code points",
});
const limit = (name: LimitName, description: string) =>
  nullable(t.Integer({ minimum: 1, maximum: limitMaxima[name], description }));
const limits = {
  max_concurrency: limit("max_concurrency", "Requests in flight"),
  requests_per_minute: limit("requests_per_minute", "In any 60 seconds"),
  tokens_per_minute: limit("tokens_per_minute", "Input and output, in any 60 seconds"),
  tokens_per_day: limit("tokens_per_day", "Input and output, per day in Seoul time"),
  tokens_per_month: limit("tokens_per_month", "Input and output, per month in Seoul time"),
};
const scope = t.Union([t.Literal("all"), t.Literal("inference"), t.Literal("gpu")]);
/** What a key may take and do, and what is noted of it; null clears a field. */
const keyFields = {
  ...limits,
  expires_at: nullable(t.String({ format: "date-time", description: "From then on the key is like an inactive one" })),
  scope: nullable(scope),
  allowed_models: nullable(
    t.Array(t.String({ minLength: 1, maxLength: 256, pattern: notBlank }), {
      minItems: 1,
      maxItems: 100,
      description: "Names, or prefixes that end in *, in any case",
    }),
  ),
  owner: nullable(t.String({ maxLength: 120, pattern: noNullCharacter })),
  note: nullable(t.String({ maxLength: 1000, pattern: noNullCharacter })),
  tags: nullable(t.Array(t.String({ minLength: 1, maxLength: 40, pattern: notBlank }), { maxItems: 10 })),
};
export const newKeyRequest = describes(
  t.Object({
    name: keyName,
    key: t.Optional(t.String({ minLength: 1, maxLength: 512, pattern: "^[\\x21-\\x7e]+$" })),
    ...t.Partial(t.Object(keyFields)).properties,
    _csrf: csrfField,
  }),
);
const changedKeyFields = { name: keyName, is_active: t.Boolean(), ...keyFields };
export const keyChangeRequest = describes(
  t.Object(
    {
      ...t.Partial(t.Object(changedKeyFields)).properties,
      end_running: t.Optional(
        t.Boolean({ description: "With is_active false or expires_at: running responses end with the key" }),
      ),
      _csrf: csrfField,
    },
    { anyOf: Object.keys(changedKeyFields).map((name) => ({ required: [name] })) },
  ),
);
export const rotationRequest = describes(
  t.Object({
    grace_minutes: t.Optional(
      t.Integer({ minimum: 0, maximum: 10_080, default: 0, description: "How long the old secret is accepted" }),
    ),
    _csrf: csrfField,
  }),
);
export const keyQuery = t.Object({
  search: t.Optional(
    t.String({
      maxLength: 1000,
      description: "Only keys whose name, owner, note or tags contain it, in any case",
      error: "search must be at most 1000 characters",
    }),
  ),
});
export const keyDeletionQuery = t.Object({
  end_running: t.Optional(
    t.Union([t.Literal("true"), t.Literal("false")], {
      description: "Whether running responses end with the key",
      error: "end_running must be true or false",
    }),
  ),
});
export type KeyDeletionQuery = Static<typeof keyDeletionQuery>;
export type KeyQuery = Static<typeof keyQuery>;
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
  expires_at: nullable(timestamp),
  scope,
  allowed_models: nullable(t.Array(t.String())),
  ...limits,
  used: t.Object(
    {
      max_concurrency: nullable(count),
      requests_per_minute: nullable(count),
      tokens_per_minute: nullable(count),
      tokens_per_day: nullable(count),
      tokens_per_month: nullable(count),
    },
    { description: "What counts against each limit now, tokens reserved for running requests included" },
  ),
  refused_today: t.Integer({ minimum: 0, description: "Requests that the limits refused today in Seoul time" }),
  owner: nullable(t.String()),
  note: nullable(t.String()),
  tags: t.Array(t.String()),
});
export type KeyBody = Static<typeof keyBody>;

export const usageSum = { request_count: count, input_tokens: count, output_tokens: count };
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
  upstream: t.Object({
    ok: t.Boolean(),
    checked_at: timestamp,
    url: t.String({ description: "PROXY_UPSTREAM_URL" }),
    failing_since: nullable(timestamp),
    cause: nullable(
      t.String({
        description: "Why it is not ok: a code of the system or of TLS, `status_503`, `timeout` or `not_http`",
      }),
    ),
  }),
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
export const alertsText = t.String({ description: "A rule file in YAML" });
export const dashboard = t.Record(t.String(), t.Unknown(), { description: "A dashboard to import" });
export const scriptText = t.String({ description: "POSIX shell" });
