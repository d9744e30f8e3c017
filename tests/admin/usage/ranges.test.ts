import { expect, test } from "bun:test";
import { keptBucketMinutes } from "../../../src/admin/usage/ranges.ts";

// At noon, which is the middle of a bucket of a day. Minute counts are kept for two days more than the setting says.
test.each([
  [1, 3, 5, 5],
  [1, 3.001, 5, 60],
  [1, 3, 7, 60],
  [1, 2.5, 1439, 1439],
  [1, 2.6, 720, 720],
  [1, 3.1, 720, 720],
  [1, 3.1, 721, 780],
  [1, 31, 1, 60],
  [1, 31, 1439, 1440],
  [7, 9, 30, 30],
  [7, 9.1, 30, 60],
  [29, 31, 20, 20],
  [29, 31, 719, 720],
  [30, 31, 1, 1],
  [30, 31, 719, 719],
  [30, 31, 1439, 1439],
  [3660, 31, 59, 59],
])(
  "with minutes of %d days, %d days ago, buckets of %d minutes are %d wide",
  (usageMinutesDays, ago, minutes, width) => {
    const nowMs = Date.parse("2026-05-01T12:00:00+09:00");
    const range = { from: nowMs - ago * 24 * 3_600_000, bucketMinutes: minutes };
    expect(keptBucketMinutes(range, nowMs, { usageMinutesDays })).toBe(width);
  },
);
