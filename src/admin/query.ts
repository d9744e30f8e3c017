import type { BucketRange } from "../store/store.ts";
import { minutesPerDay, msPerMinute } from "../time/seoul.ts";
import type { HistoryQuery } from "./schemas.ts";

/** Accepts only decimal digits. Elysia (1.4.30) also converts `0x7`, `1e1` and `7.0`. Remove when it does not. */
export function parseIntegers({ query }: { query: Record<string, unknown> }): void {
  for (const name of ["days", "bucket_minutes", "gpu_id"]) {
    const text = query[name];
    if (text !== undefined) query[name] = typeof text === "string" && /^\d+$/.test(text) ? Number(text) : Number.NaN;
  }
}

export const bucketRange = (nowMs: number, query: Pick<HistoryQuery, "days" | "bucket_minutes">): BucketRange => ({
  since: nowMs - query.days * minutesPerDay * msPerMinute,
  bucketMinutes: query.bucket_minutes,
});
