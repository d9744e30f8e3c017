import { type Static, Type as t } from "@sinclair/typebox";
import { backendState, count, nullable, timestamp, open, errors } from "../http/schemas.ts";
import { queueBody } from "../requests/queue.ts";
import { usageTotal } from "../usage/contract.ts";

const limitsState = t.Union([t.Literal("ok"), t.Literal("degraded")], {
  description:
    "Whether the limits of keys hold over all processes; degraded: the database does not answer, and LIMITS_FALLBACK holds",
});

export const overviewBody = t.Object({
  now: timestamp,
  today: usageTotal,
  yesterday: t.Object(usageTotal.properties, { description: "Yesterday up to the same minute of the day" }),
  last_minute: t.Object(usageTotal.properties, { description: "The last whole minute" }),
  active_keys: count,
  keys_at_limit: t.Integer({ minimum: 0, description: "Active keys of which nothing is left of one of their limits" }),
  in_flight: count,
  queue: queueBody,
  limits: limitsState,
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
  backends: t.Array(t.Object({ name: t.String(), state: backendState, since: timestamp }), {
    description: "In the order of the file; `/api/backends` has more",
  }),
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
  upstream: t.Union([t.Literal("ok"), t.Literal("not answering")], {
    description: "With several backends: whether one of them is in. It does not change the status",
  }),
  backends: t.Optional(
    t.Array(t.Object({ name: t.String(), state: backendState }), { description: "Those of MODELS_FILE" }),
  ),
  counts: t.Union([t.Literal("ok"), t.Literal("waiting"), t.Literal("partly refused")], {
    description:
      "Whether the usage of requests is written, waits for the database, or was partly refused by it since the start",
  }),
  limits: limitsState,
});
export type ReadinessBody = Static<typeof readinessBody>;
export const metricsText = t.String({ description: "Prometheus text format" });
export const alertsText = t.String({ description: "A rule file in YAML" });
export const dashboard = t.Record(t.String(), t.Unknown(), { description: "A dashboard to import" });

export const settingsBody = t.Object({
  settings: t.Array(
    t.Object({
      name: t.String(),
      value: nullable(t.String({ description: "Null if it is unset, or a secret" })),
      is_set: t.Boolean(),
      is_secret: t.Boolean(),
      origin: t.Union([t.Literal("environment"), t.Literal(".env"), t.Literal("default")]),
      allowed: t.String(),
    }),
  ),
  versions: t.Object({ tollgate: t.String(), commit: t.String(), bun: t.String(), database: t.String() }),
  database: t.Object({
    kind: t.Union([t.Literal("sqlite"), t.Literal("postgresql")]),
    size_bytes: count,
    tables: t.Array(
      t.Object({ name: t.String(), rows: count, is_exact: t.Boolean({ description: "False: there are more rows" }) }),
    ),
  }),
  retention: t.Array(t.Object({ data: t.String(), keeps: t.String() })),
  backup: t.Object({
    succeeded_at: nullable(timestamp),
    problem: nullable(t.Object({ at: timestamp, reason: t.String() }, { description: "Since the last good one" })),
    command: t.String({ description: "Makes one without the server" }),
  }),
  password_from_environment: t.Boolean(),
});
export type SettingsBody = Static<typeof settingsBody>;

export const getHealth = {
  response: { 200: healthBody },
  detail: { summary: "Whether the process is up", ...open },
};

export const getReadiness = {
  response: { 200: readinessBody, 503: readinessBody },
  detail: { summary: "Whether requests can be served and counted", ...open },
};

export const getMetrics = {
  response: { 200: metricsText, ...errors(401) },
  detail: { summary: "Metrics in the Prometheus text format", security: [{ session: [] }, { metricsToken: [] }] },
};

export const getAlerts = {
  response: { 200: alertsText, ...errors(401) },
  detail: { summary: "Alert rules for Prometheus", security: [{ session: [] }, { metricsToken: [] }] },
};

export const getDashboard = {
  response: { 200: dashboard, ...errors(401) },
  detail: { summary: "A dashboard for Grafana", security: [{ session: [] }, { metricsToken: [] }] },
};

export const getOverview = {
  response: { 200: overviewBody, ...errors(401) },
  detail: { summary: "Current usage, requests in flight, GPUs and backend" },
};

export const getOpenApi = {
  response: { 200: t.Record(t.String(), t.Unknown()), ...errors(401) },
  detail: { summary: "This document" },
};

export const getSettings = {
  response: { 200: settingsBody, ...errors(401) },
  detail: { summary: "Settings, versions, the database and how long data is kept" },
};
