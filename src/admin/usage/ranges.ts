import { keptMinutes, type Retention } from "../../store/retention.ts";
import type { BucketRange, KeyFilter } from "../../store/reports/contract.ts";
import { bucketFloor, minuteOf, minutesPerDay, minutesPerHour, msPerMinute } from "../../time/seoul.ts";
import type { HistoryQuery, ByDayQuery } from "./contract.ts";
import type { KeyId } from "../../domain/keys.ts";

export const bucketRange = (nowMs: number, query: Pick<HistoryQuery, "days" | "bucket_minutes">): BucketRange => ({
  since: nowMs - query.days * minutesPerDay * msPerMinute,
  bucketMinutes: query.bucket_minutes,
});

/**
 * The requested width, or the next one of whole hours if the first bucket begins before the minute counts that are kept: it
 * would show nothing of what hour counts still have.
 * @param from what the first bucket contains, epoch milliseconds
 */
export function keptBucketMinutes(
  { from, bucketMinutes }: { from: number; bucketMinutes: number },
  nowMs: number,
  retention: Pick<Retention, "usageMinutesDays">,
): number {
  const isKept = bucketFloor(minuteOf(from), bucketMinutes) >= minuteOf(nowMs) - keptMinutes(retention);
  return isKept ? bucketMinutes : Math.ceil(bucketMinutes / minutesPerHour) * minutesPerHour;
}

export const keyIdsOf = (text = ""): KeyId[] => text.split(",").filter(Boolean).map(Number);

export const keyFilterOf = (query: Pick<ByDayQuery, "key_id" | "q" | "hide">): KeyFilter => ({
  keyId: query.key_id,
  search: query.q,
  hiddenIds: keyIdsOf(query.hide),
});
