import { type Static, Type as t } from "@sinclair/typebox";
import { csrfField } from "../http/body-schema.ts";
import * as schema from "../http/schemas.ts";
import { queueBody } from "../requests/queue.ts";
import { usageTotal } from "../usage/contract.ts";

const overviewBody = t.Object({
  now: schema.timestamp,
  last_minute: t.Object(usageTotal.properties, { description: "The last whole minute" }),
  active_keys: schema.count,
  near_limit: t.Array(
    t.Object({
      kind: t.Union([t.Literal("key"), t.Literal("team")]),
      id: schema.count,
      name: t.String(),
      used: schema.count,
      limit: schema.count,
      unit: t.String(),
    }),
    { description: "The 5 active keys and teams that have used most of one of their limits, four fifths or more" },
  ),
  in_flight: schema.count,
  queue: queueBody,
  separate_ports: t.Boolean({ description: "ADMIN_PORT is set: /v1 is not served at this address" }),
  backends: t.Integer({ minimum: 0, description: "How many there are" }),
  full_backends: t.Array(t.Object({ name: t.String(), places: schema.count, since: schema.timestamp }), {
    description: "Those of which all places have been taken for 5 minutes",
  }),
  hot_gpus: t.Array(t.Object({ gpu_id: t.Integer(), name: t.String(), temp_c: t.Integer() }), {
    description: "Those of 85 °C or more, the hottest first, that have sent a sample within 2 minutes",
  }),
  upstream_url: t.String({ description: "PROXY_UPSTREAM_URL" }),
});
export type OverviewBody = Static<typeof overviewBody>;

const healthBody = t.Object({ status: t.Literal("ok") });
export type HealthBody = Static<typeof healthBody>;

const stateMembers = {
  kind: t.String({ description: "The handbook lists them" }),
  since: schema.timestamp,
};
const stateBody = t.Object({
  ...stateMembers,
  object: t.String({ description: "Which one of its kind, such as a backend; empty where there can be one" }),
  what: t.String(),
  remedy: t.String(),
  instance: schema.nullable(t.String({ description: "A process or a machine; null: all that share the database" })),
  silenced: schema.nullable(t.Object({ until: schema.timestamp, why: t.String(), by: t.String() })),
});
export type StateBody = Static<typeof stateBody>;
const statesBody = t.Object({
  states: t.Array(stateBody, { description: "What is wrong now, the worst first" }),
  past: t.Array(t.Object({ ...stateBody.properties, until: schema.timestamp, count: schema.nullable(schema.count) }), {
    description: "What was, in the last 30 days, the latest first",
  }),
  unknown_since: schema.nullable({
    ...schema.timestamp,
    description: "The database does not answer: no later state of other processes is known",
  }),
});
export type StatesBody = Static<typeof statesBody>;
export const silenceRequest = t.Object({
  kind: t.String({ error: () => "kind must be one of a state" }),
  instance: t.Optional(t.String({ error: () => "instance must be one of a state" })),
  until: t.String({ format: "date-time", error: () => "until must be a time, such as 2026-05-01T12:00:00+09:00" }),
  why: t.String({ minLength: 1, maxLength: 300, error: () => "why must have 1 to 300 characters" }),
  _csrf: csrfField,
});
const readinessBody = t.Object({
  status: t.Union([t.Literal("ready"), t.Literal("unavailable")], {
    description: "Unavailable: the database cannot be written",
  }),
  states: t.Array(t.Object({ ...t.Partial(stateBody).properties, ...stateMembers }), {
    description: "As this process knows them; all of it with a session or METRICS_TOKEN",
  }),
});
export type ReadinessBody = Static<typeof readinessBody>;

const settingsBody = t.Object({
  settings: t.Array(
    t.Object({
      name: t.String(),
      value: schema.nullable(t.String({ description: "Null if it is unset, or a secret" })),
      is_set: t.Boolean(),
      is_secret: t.Boolean(),
      origin: t.Union([t.Literal("environment"), t.Literal(".env"), t.Literal("default")]),
      allowed: t.String(),
    }),
  ),
  versions: t.Object({ tollgate: t.String(), commit: t.String(), bun: t.String(), database: t.String() }),
  database: t.Object({
    kind: t.Union([t.Literal("sqlite"), t.Literal("postgresql")]),
    size_bytes: schema.count,
    tables: t.Array(
      t.Object({
        name: t.String(),
        rows: schema.count,
        is_exact: t.Boolean({ description: "False: there are more rows" }),
      }),
    ),
  }),
  retention: t.Array(t.Object({ data: t.String(), keeps: t.String(), holds: t.Optional(t.String()) })),
  backup: t.Object({
    succeeded_at: schema.nullable(schema.timestamp),
    problem: schema.nullable(
      t.Object({ at: schema.timestamp, reason: t.String() }, { description: "Since the last good one" }),
    ),
    command: t.String({ description: "Makes one without the server" }),
  }),
  password_from_environment: t.Boolean(),
});
export type SettingsBody = Static<typeof settingsBody>;

export const getHealth = { response: { 200: healthBody }, detail: { summary: "Whether the process is up" } };
export const getReadiness = {
  response: { 200: readinessBody, 503: readinessBody },
  detail: { summary: "Whether requests can be served and counted" },
};
export const getMetrics = schema.responds(
  "Metrics in the Prometheus text format",
  t.String({ description: "Prometheus text format" }),
);
export const getAlerts = schema.responds(
  "Alert rules for Prometheus",
  t.String({ description: "A rule file in YAML" }),
);
export const getDashboard = schema.responds(
  "A dashboard for Grafana",
  t.Record(t.String(), t.Unknown(), { description: "A dashboard to import" }),
);

export const getOverview = schema.responds("Current usage, requests in flight, GPUs and backend", overviewBody);
export const listStates = schema.responds("What is wrong, since when, and what mends it", statesBody);
export const silenceState = schema.takesBody(
  "Silence a state until a time: no alert and no notice tells of it until it comes again",
  silenceRequest,
  { 200: schema.okBody },
  404,
);
export const sendTestNotice = schema.responds(
  "Send a notice to NOTICE_URL now; 502 says what is wrong",
  schema.okBody,
  409,
  502,
);

export const getOpenApi = schema.responds("This document", t.Record(t.String(), t.Unknown()));
export const getSettings = schema.responds("Settings, versions, the database and how long data is kept", settingsBody);
