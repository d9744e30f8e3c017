import { type Static, Type as t } from "@sinclair/typebox";
import * as schema from "../http/schemas.ts";
import { timestampMessage } from "../http/query.ts";

export const usageSum = { request_count: schema.count, input_tokens: schema.count, output_tokens: schema.count };
const usageOfKey = { key_id: t.Integer(), key_name: t.String(), ...usageSum };

export const usageTotal = t.Object({ ...usageSum, total_tokens: schema.count });
export type UsageTotal = Static<typeof usageTotal>;
const usageSummary = t.Object({ date: t.String({ format: "date" }), ...usageTotal.properties });
export type UsageSummary = Static<typeof usageSummary>;
const dailyUsage = t.Array(t.Object({ date: t.String({ format: "date" }), ...usageOfKey }));
const bucketMinutes = t.Integer({
  description:
    "Wider than requested if the first bucket begins before what is kept: minutes, or hours by team, user or model",
});
const usageHistory = t.Object({
  days: t.Integer(),
  bucket_minutes: bucketMinutes,
  points: t.Array(t.Object({ bucket_start: schema.timestamp, ...usageOfKey })),
});

const dailyQuery = t.Object({ days: schema.integerParameter("days", { minimum: 7, maximum: 365, default: 90 }) });
export type DailyQuery = Static<typeof dailyQuery>;
export const historyQuery = t.Object({
  days: schema.integerParameter("days", { minimum: 1, maximum: 30, default: 7 }),
  bucket_minutes: schema.integerParameter("bucket_minutes", { minimum: 1, maximum: 1440, default: 5 }),
});
export type HistoryQuery = Static<typeof historyQuery>;

// The query and the response of the chart. Sums are columns: an array for each field.

export const timestampParameter = (name: string, description?: string) =>
  t.Optional(
    t.String({
      ...(description !== undefined && { description }),
      pattern: "^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d(:\\d\\d(\\.\\d{1,9})?)?(Z|[+-]\\d\\d:\\d\\d)$",
      error: timestampMessage(name),
    }),
  );

/** Of which usage. */
export const usageFilter = {
  key_id: t.Optional(
    t.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, error: "key_id must be the id of a key" }),
  ),
  team_id: schema.teamParameter,
  user_id: schema.userParameter,
  model: schema.textParameter("model", 512, "As it is counted; empty: none was named"),
  tag: schema.textParameter("tag", 512, "Of the key; empty: it has none"),
  owner: schema.textParameter("owner", 512, "Of the key; empty: it has none"),
};
const chartQuery = t.Object({
  by: schema.choice("by", ["key", "team", "user", "model"], "key"),
  from: timestampParameter("from"),
  to: timestampParameter("to"),
  bucket_minutes: schema.integerParameter("bucket_minutes", { minimum: 1, maximum: 1440, default: 5 }),
  metric: t.Optional(
    t.Union(
      (["requests", "input", "output", "total"] as const).map((metric) => t.Literal(metric)),
      { default: "output", error: "metric must be requests, input, output or total" },
    ),
  ),
  top: schema.integerParameter("top", { minimum: 0, maximum: 1000, default: 8 }),
  list: schema.integerParameter("list", { minimum: 0, maximum: 1000, default: 100 }),
  ...usageFilter,
  since: timestampParameter("since"),
  have: t.Optional(
    t.String({
      pattern: "^(\\d{1,15}(,\\d{1,15}){0,999})?$",
      error: "have must be at most 1000 ids, separated by commas",
    }),
  ),
});
export type ChartQuery = Static<typeof chartQuery>;
const counts = t.Array(schema.count);
const usageColumns = { request_count: counts, input_tokens: counts, output_tokens: counts };
const bucketValues = t.Array(schema.count, { description: "One value for each bucket, from first_bucket on" });
const groupId = t.Union([t.Integer(), t.String()], { description: "A model has its name" });
const usageChart = t.Object({
  from: schema.timestamp,
  to: schema.timestamp,
  bucket_minutes: bucketMinutes,
  metric: t.String({ description: "What the values of the series count, and what orders the keys" }),
  first_bucket: t.String({
    format: "date-time",
    description: "The start of the first bucket in the series: from, or since if have names the keys of the series",
  }),
  key_count: schema.described("Keys, or what `by` names, with usage, also those that are not listed"),
  ...usageSum,
  keys: t.Object(
    { id: t.Array(groupId), name: t.Array(t.String()), ...usageColumns },
    { description: "The keys, or what `by` names, with the highest sums, highest first; none if list is 0" },
  ),
  series: t.Array(t.Object({ key_id: groupId, values: bucketValues })),
  other: t.Object(
    { key_count: schema.count, ...usageSum, values: bucketValues },
    { description: "All without a series; no values if there is none" },
  ),
});
export type UsageChart = Static<typeof usageChart>;

export const getUsageSummary = schema.responds("Usage of all keys together, today in Seoul time", usageSummary);
export const getUsageTotal = schema.responds("Total usage of the keys that exist", usageTotal);
export const listDailyUsage = schema.takesQuery(
  "Usage per Seoul day and key, latest day first",
  dailyQuery,
  dailyUsage,
);
export const listUsageHistory = schema.takesQuery(
  "Usage per time bucket and key; a bucket omits keys without traffic",
  historyQuery,
  usageHistory,
);
export const getUsageChart = schema.takesQuery(
  "Usage per time bucket of the keys, teams, users or models that use most, and of all others together, as columns",
  chartQuery,
  usageChart,
);
