import { type Static, Type as t } from "@sinclair/typebox";
import { count, integerParameter, timestamp, responds, takesQuery } from "../http/schemas.ts";
import { timestampMessage } from "../http/query.ts";

export const usageSum = { request_count: count, input_tokens: count, output_tokens: count };
const usageOfKey = { key_id: t.Integer(), key_name: t.String(), ...usageSum };

export const usageTotal = t.Object({ ...usageSum, total_tokens: count });
export type UsageTotal = Static<typeof usageTotal>;
export const usageSummary = t.Object({ date: t.String({ format: "date" }), ...usageTotal.properties });
export type UsageSummary = Static<typeof usageSummary>;
export const dailyUsage = t.Array(t.Object({ date: t.String({ format: "date" }), ...usageOfKey }));
const bucketMinutes = t.Integer({
  description:
    "Wider than requested, in whole hours, if the first bucket begins before the minute counts that are kept",
});
export const usageHistory = t.Object({
  days: t.Integer(),
  bucket_minutes: bucketMinutes,
  points: t.Array(t.Object({ bucket_start: timestamp, ...usageOfKey })),
});

export const dailyQuery = t.Object({ days: integerParameter("days", { minimum: 7, maximum: 365, default: 90 }) });
export type DailyQuery = Static<typeof dailyQuery>;
export const historyQuery = t.Object({
  days: integerParameter("days", { minimum: 1, maximum: 30, default: 7 }),
  bucket_minutes: integerParameter("bucket_minutes", { minimum: 1, maximum: 1440, default: 5 }),
});
export type HistoryQuery = Static<typeof historyQuery>;

// The query and the response of the chart. Sums are columns: an array for each field.

const keyIds = (name: string) =>
  t.Optional(
    t.String({
      pattern: "^(\\d{1,15}(,\\d{1,15}){0,999})?$",
      error: `${name} must be at most 1000 key ids, separated by commas`,
    }),
  );
const timestampParameter = (name: string) =>
  t.Optional(
    t.String({
      pattern: "^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d(:\\d\\d(\\.\\d{1,9})?)?(Z|[+-]\\d\\d:\\d\\d)$",
      error: timestampMessage(name),
    }),
  );

export const keyFilter = {
  key_id: t.Optional(
    t.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, error: "key_id must be the id of a key" }),
  ),
  q: t.Optional(
    t.String({ maxLength: 120, error: "q must be at most 120 characters", description: "Part of a key's name" }),
  ),
  hide: keyIds("hide"),
};
export const chartQuery = t.Object({
  from: timestampParameter("from"),
  to: timestampParameter("to"),
  bucket_minutes: integerParameter("bucket_minutes", { minimum: 1, maximum: 1440, default: 5 }),
  metric: t.Optional(
    t.Union(
      (["requests", "input", "output", "total"] as const).map((metric) => t.Literal(metric)),
      { default: "output", error: "metric must be requests, input, output or total" },
    ),
  ),
  top: integerParameter("top", { minimum: 0, maximum: 1000, default: 8 }),
  list: integerParameter("list", { minimum: 0, maximum: 1000, default: 100 }),
  ...keyFilter,
  since: timestampParameter("since"),
  have: keyIds("have"),
});
export type ChartQuery = Static<typeof chartQuery>;
const counts = t.Array(count);
const usageColumns = { request_count: counts, input_tokens: counts, output_tokens: counts };
const bucketValues = t.Array(count, { description: "One value for each bucket, from first_bucket on" });
export const usageChart = t.Object({
  from: timestamp,
  to: timestamp,
  bucket_minutes: bucketMinutes,
  metric: t.String({ description: "What the values of the series count, and what orders the keys" }),
  first_bucket: t.String({
    format: "date-time",
    description: "The start of the first bucket in the series: from, or since if have names the keys of the series",
  }),
  key_count: t.Integer({ minimum: 0, description: "Keys with usage, also those that are hidden or not listed" }),
  ...usageSum,
  keys: t.Object(
    { id: t.Array(t.Integer()), name: t.Array(t.String()), ...usageColumns },
    { description: "The keys with the highest sums, highest first, hidden ones too, as columns; none if list is 0" },
  ),
  series: t.Array(t.Object({ key_id: t.Integer(), values: bucketValues })),
  other: t.Object(
    { key_count: count, ...usageSum, values: bucketValues },
    { description: "All keys without a series that are not hidden; no values if there is none" },
  ),
});
export type UsageChart = Static<typeof usageChart>;

export const getUsageSummary = responds("Usage of all keys together, today in Seoul time", usageSummary);
export const getUsageTotal = responds("Total usage of the keys that exist", usageTotal);
export const listDailyUsage = takesQuery("Usage per Seoul day and key, latest day first", dailyQuery, dailyUsage);
export const listUsageHistory = takesQuery(
  "Usage per time bucket and key; a bucket omits keys without traffic",
  historyQuery,
  usageHistory,
);
export const getUsageChart = takesQuery(
  "Usage per time bucket of the keys that use the most, and of all others together, as columns",
  chartQuery,
  usageChart,
);
