import type { BucketRange } from "../store/store.ts";
import { minutesPerDay, msPerMinute } from "../time/seoul.ts";
import type { HistoryQuery } from "./schemas.ts";

const integerNames = ["days", "hours", "bucket_minutes", "key_id", "limit", "min_duration_ms"];

/** Accepts only decimal digits. Elysia (1.4.30) also converts `0x7`, `1e1` and `7.0`. Remove when it does not. */
export function parseIntegers({ query }: { query: Record<string, unknown> }): void {
  for (const name of integerNames) {
    const text = query[name];
    if (text !== undefined) query[name] = typeof text === "string" && /^\d+$/.test(text) ? Number(text) : Number.NaN;
  }
}

export const bucketRange = (nowMs: number, query: HistoryQuery): BucketRange => ({
  since: nowMs - query.days * minutesPerDay * msPerMinute,
  bucketMinutes: query.bucket_minutes,
});
