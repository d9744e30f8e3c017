import type { Log } from "../../log/log.ts";
import type { Retention } from "../../store/retention.ts";
import type { Store } from "../../store/store.ts";
import type { WallClock } from "../../time/clock.ts";
import { dayBefore, dayFromNumber, dayOf } from "../../time/seoul.ts";
import { streamJson } from "../http/json-stream.ts";
import type {
  ByDayAndKeyQuery,
  ByDayQuery,
  DailyQuery,
  HistoryQuery,
  UsageByDay,
  UsageByDayAndKey,
  UsageSummary,
  UsageTotal,
} from "./contract.ts";
import type { UsageSum } from "../../domain/usage.ts";
import { bucketRange, existingBucketMinutes, keyFilterOf } from "./ranges.ts";
import { countersBody, readReport } from "./report.ts";

export interface UsageDeps {
  store: Pick<Store, "usage">;
  clock: WallClock;
  retention: Pick<Retention, "usageMinutesDays">;
  log: Log;
}

export const getUsageSummary =
  ({ store, clock }: Pick<UsageDeps, "store" | "clock">) =>
  async (): Promise<UsageSummary> => {
    const date = dayOf(clock());
    return { date, ...usageTotalBody(await store.usage.sumOfDay(date)) };
  };

export const getUsageTotal =
  ({ store }: Pick<UsageDeps, "store">) =>
  async (): Promise<UsageTotal> =>
    usageTotalBody(await store.usage.sumOfKeys());

export const listDailyUsage =
  ({ store, clock, log }: Omit<UsageDeps, "retention">) =>
  ({ query, request }: { query: DailyQuery; request: Request }): Promise<Response> => {
    const firstDay = dayBefore(dayOf(clock()), query.days);
    return streamJson(request, ["[", store.usage.daily(firstDay), "]"], log);
  };

export const listUsageHistory =
  ({ store, clock, retention, log }: UsageDeps) =>
  async ({ query, request }: { query: HistoryQuery; request: Request }): Promise<Response> => {
    const now = clock();
    const { since, bucketMinutes: requested } = bucketRange(now, query);
    const width = { from: since, bucketMinutes: requested };
    const bucketMinutes = await existingBucketMinutes(width, now, { store, retention });
    const head = `{"days":${query.days},"bucket_minutes":${bucketMinutes},"points":[`;
    return streamJson(request, [head, store.usage.history({ since, bucketMinutes }), "]}"], log);
  };

export const getUsageByDay =
  ({ store, clock }: Pick<UsageDeps, "store" | "clock">) =>
  async ({ query }: { query: ByDayQuery }): Promise<UsageByDay> => {
    const today = dayOf(clock());
    const range = { firstDay: dayBefore(today, query.days), ...keyFilterOf(query) };
    const { rowCount, allTime, days } = await readReport(store.usage.byDay(range));
    return {
      today,
      row_count: rowCount,
      all_time: countersBody(allTime),
      days: { date: days.day.map((day) => dayFromNumber(day)), ...countersBody(days) },
    };
  };

export const listUsageByDayAndKey =
  ({ store, clock }: Pick<UsageDeps, "store" | "clock">) =>
  async ({ query }: { query: ByDayAndKeyQuery }): Promise<UsageByDayAndKey> => {
    const firstDay = dayBefore(dayOf(clock()), query.days);
    const report = store.usage.byDayAndKey({ firstDay, beforeDay: query.before, ...keyFilterOf(query) });
    const { nextBefore, names, rows } = await readReport(report);
    return {
      next_before: nextBefore === null ? null : dayFromNumber(nextBefore),
      names: { key_id: names.keyId, name: names.name },
      rows: { date: rows.day.map((day) => dayFromNumber(day)), key_id: rows.keyId, ...countersBody(rows) },
    };
  };

export function usageTotalBody(sum: UsageSum): UsageTotal {
  return {
    request_count: sum.requestCount,
    input_tokens: sum.inputTokens,
    output_tokens: sum.outputTokens,
    total_tokens: sum.inputTokens + sum.outputTokens,
  };
}
