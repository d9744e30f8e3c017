// Usage, prices, costs, and what backends have counted themselves.
//
// It keeps true: sums come from the store, and days are Seoul's. Where minute counts are no longer kept, buckets are
// whole hours (`ranges.ts`). Prices are one setting; they are refused as a whole if one is wrong. It writes nothing
// else.
//
// Removed: five routes that told the sums of `costs` and `chart` in other shapes.

import type { AdminDeps } from "../http/deps.ts";
import { dayBefore, dayOf } from "../../time/seoul.ts";
import { streamHistory, streamJson } from "../http/json-stream.ts";
import type { DailyQuery, HistoryQuery, UsageSummary, UsageTotal } from "./contract.ts";
import type { UsageSum } from "../../domain/usage.ts";
import { countersBody } from "./report.ts";
import { bucketRange, existingBucketMinutes } from "./ranges.ts";

export const getUsageSummary =
  ({ store, clock }: AdminDeps) =>
  async (): Promise<UsageSummary> => {
    const date = dayOf(clock());
    return { date, ...usageTotalBody(await store.usage.sumOfDay(date)) };
  };

export const getUsageTotal =
  ({ store }: AdminDeps) =>
  async (): Promise<UsageTotal> =>
    usageTotalBody(await store.usage.sumOfKeys());

export const listDailyUsage =
  ({ store, clock, log }: AdminDeps) =>
  ({ query, request }: { query: DailyQuery; request: Request }): Promise<Response> => {
    const firstDay = dayBefore(dayOf(clock()), query.days);
    return streamJson(request, ["[", store.usage.daily(firstDay), "]"], log);
  };

export const listUsageHistory =
  ({ store, clock, retention, log }: AdminDeps) =>
  async ({ query, request }: { query: HistoryQuery; request: Request }): Promise<Response> => {
    const now = clock();
    const { since, bucketMinutes: requested } = bucketRange(now, query);
    const width = { from: since, bucketMinutes: requested };
    const bucketMinutes = await existingBucketMinutes(width, now, { store, retention });
    const points = store.usage.history({ since, bucketMinutes });
    return streamHistory(request, { days: query.days, bucket_minutes: bucketMinutes }, points, log);
  };

export const usageTotalBody = (sum: UsageSum): UsageTotal => ({
  ...countersBody(sum),
  total_tokens: sum.inputTokens + sum.outputTokens,
});
