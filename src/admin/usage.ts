import { dayBefore, dayOf, msPerMinute, minutesPerDay, timestampOf } from "../time/seoul.ts";
import type { BucketRange, PowerPoint, UsageSum } from "../store/store.ts";
import type { HistoryQuery, UsageTotal } from "./schemas.ts";

export function usageTotal(sum: UsageSum): UsageTotal {
  return {
    request_count: sum.requestCount,
    input_tokens: sum.inputTokens,
    output_tokens: sum.outputTokens,
    total_tokens: sum.inputTokens + sum.outputTokens,
  };
}

/** The first of the days that `days` back from today includes. */
export const firstDay = (nowMs: number, days: number): string => dayBefore(dayOf(nowMs), days);

export const bucketRange = (nowMs: number, query: HistoryQuery): BucketRange => ({
  since: nowMs - query.days * minutesPerDay * msPerMinute,
  bucketMinutes: query.bucket_minutes,
});

/** A history answer up to where its points begin. */
export const historyHead = ({ days, bucket_minutes }: HistoryQuery): string =>
  `{"days":${days},"bucket_minutes":${bucket_minutes},"points":[`;

export const powerPointBody = (point: PowerPoint): { recorded_at: string; power_draw_w: number } => ({
  recorded_at: timestampOf(point.bucketStart),
  power_draw_w: point.powerDrawW,
});
