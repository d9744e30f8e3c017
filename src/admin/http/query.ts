import type { KeyId } from "../../domain/keys.ts";
import { keptMinutes, type Retention } from "../../store/retention.ts";
import type { BucketRange } from "../../store/reports/usage-ranges.ts";
import type { KeyFilter } from "../../store/reports/usage-ranges.ts";
import { bucketFloor, isDay, minuteOf, minutesPerDay, minutesPerHour, msPerMinute } from "../../time/seoul.ts";
import { ApiError } from "./errors.ts";
import type { HistoryQuery } from "../usage/contract.ts";
import { type ByDayQuery, dayMessage, timestampMessage } from "../usage/contract.ts";

const integerNames = ["days", "hours", "bucket_minutes", "key_id", "gpu_id", "top", "list", "limit", "min_duration_ms"];

/** Accepts only decimal digits. Elysia (1.4.30) also converts `0x7`, `1e1` and `7.0`. Remove when it does not. */
export function parseIntegers({ query }: { query: Record<string, unknown> }): void {
  for (const name of integerNames) {
    const text = query[name];
    if (text !== undefined) query[name] = typeof text === "string" && /^\d+$/.test(text) ? Number(text) : Number.NaN;
  }
}

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

const dayLength = "2026-05-01".length;

/** @throws ApiError if there is no such day */
export function parseDay(name: string, text: string | undefined): string | undefined {
  if (text !== undefined && !isDay(text)) throw new ApiError(400, dayMessage(name));
  return text;
}

/** @throws ApiError if there is no such time */
export function parseTimestamp(
  name: string,
  text: string | undefined,
  message = timestampMessage(name),
): number | undefined {
  if (text === undefined) return undefined;
  const ms = isDay(text.slice(0, dayLength)) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(ms)) throw new ApiError(400, message);
  return ms;
}

export const keyIdsOf = (text = ""): KeyId[] => text.split(",").filter(Boolean).map(Number);

export const keyFilterOf = (query: Pick<ByDayQuery, "key_id" | "q" | "hide">): KeyFilter => ({
  keyId: query.key_id,
  search: query.q,
  hiddenIds: keyIdsOf(query.hide),
});
