import { expect, test } from "bun:test";
import { startAdmin } from "../support/admin-server.ts";
import { keptBucketMinutes } from "../../../src/admin/usage/ranges.ts";
import { shared } from "../../support/shared.ts";

const admin = shared(() => startAdmin());
const owner = shared(() => admin.login());

test.each([
  ["/api/usage/costs?to=2026-02-30", "to must be a day, such as 2026-05-01"],
  ["/api/usage/costs?to=2026-13-01", "to must be a day, such as 2026-05-01"],
  [
    "/api/usage/chart?from=2026-02-30T00:00:00Z",
    "from must be a timestamp with an offset, such as 2026-05-01T09:00:00+09:00",
  ],
  ["/api/requests?since=2026-02-30T00:00:00Z", "since must be a time such as 2026-05-01T12:00:00Z"],
])("%s names a day that does not exist, and is refused", async (path, error) => {
  const { status, json } = await admin.send("GET", path, { as: owner });
  expect([status, json]).toEqual([400, { error }]);
});

test.each(["2026-02-30", "2026-13-01", "2025-02-29"])(
  "a price is not valid from %s, which does not exist",
  async (day) => {
    const body = {
      currency: "EUR",
      models: [{ pattern: "*", valid_from: day, input: 1, cached_input: null, output: 1 }],
    };
    const { status, json } = await admin.send("PUT", "/api/prices", { as: owner, json: body });
    expect([status, json]).toEqual([400, { error: "models.0.valid_from is invalid" }]);
  },
);

test("a leap day is a day", async () => {
  const { status } = await admin.send("GET", "/api/usage/costs?to=2028-02-29", { as: owner });
  expect(status).toBe(200);
});

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
