import type { AdminDeps } from "../http/deps.ts";
import { keptMinutes, type Retention } from "../../store/retention.ts";
import type { BucketRange, UsageFilter } from "../../store/reports/contract.ts";
import { bucketFloor, minuteOf, minutesPerHour, msPerDay } from "../../time/seoul.ts";
import type { ChartQuery, HistoryQuery } from "./contract.ts";

export const bucketRange = (nowMs: number, query: Pick<HistoryQuery, "days" | "bucket_minutes">): BucketRange => ({
  since: nowMs - query.days * msPerDay,
  bucketMinutes: query.bucket_minutes,
});

interface Width {
  /** What the first bucket contains, epoch milliseconds. */
  from: number;
  bucketMinutes: number;
}

/**
 * The requested width, or the next one of whole hours if the first bucket begins before the minute counts that are kept: it
 * would show nothing of what hour counts still have.
 */
export function keptBucketMinutes(
  { from, bucketMinutes }: Width,
  nowMs: number,
  retention: Pick<Retention, "usageMinutesDays">,
): number {
  const isKept = bucketFloor(minuteOf(from), bucketMinutes) >= minuteOf(nowMs) - keptMinutes(retention);
  return isKept ? bucketMinutes : wholeHours(bucketMinutes);
}

/** The same for what is there: minutes that were deleted stay so if they are to be kept for longer later. */
export async function existingBucketMinutes(
  range: Width,
  nowMs: number,
  { store, retention }: Pick<AdminDeps, "store" | "retention">,
): Promise<number> {
  const width = keptBucketMinutes(range, nowMs, retention);
  if (width % minutesPerHour === 0) return width;
  const isThere = await store.usage.hasMinutesFrom(bucketFloor(minuteOf(range.from), width));
  return isThere ? width : wholeHours(width);
}

/** How many days back the hours by team, user and model reach; days reach back to the first. */
export const hourDays = 90;

export const multipleOf = (unit: number, value: number): number => Math.ceil(value / unit) * unit;

const wholeHours = (minutes: number): number => multipleOf(minutesPerHour, minutes);

export const usageFilterOf = (
  query: Pick<ChartQuery, "key_id" | "team_id" | "user_id" | "model" | "tag" | "owner">,
): UsageFilter => ({
  keyId: query.key_id,
  teamId: query.team_id,
  userId: query.user_id,
  model: query.model,
  tag: query.tag,
  owner: query.owner,
});
