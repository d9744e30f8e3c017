import { beforeAll, describe, expect, test } from "bun:test";
import { onEachEngine } from "../../store/each-engine.ts";
import { usageAt } from "../../store/test-store.ts";
import { shared } from "../../support/shared.ts";
import { startAdmin } from "../support/admin-server.ts";

const midnight = Date.parse("2026-05-02T00:00:00+09:00");
const minute = 60_000;

/** The usage of one response for `keyId` that closed at `at`. */
const closed = (keyId: number, at: number, inputTokens: number, outputTokens: number) =>
  usageAt(keyId, at, { inputTokens, outputTokens });

onEachEngine(({ engine }) => {
  describe("around midnight in Seoul", () => {
    const get = async (path: string) => (await admin.send("GET", path, { as: owner })).json;
    const admin = shared(() => startAdmin({ engine }));
    const owner = shared(() => admin.login());
    beforeAll(async () => {
      const [first, second] = [await admin.createKey("first"), await admin.createKey("second")];
      await admin.store.usage.add([
        closed(second.id, midnight - 1, 100, 10),
        closed(first.id, midnight - minute, 1, 2),
        closed(first.id, midnight, 20, 30),
        closed(first.id, midnight + 4 * minute, 5, 6),
      ]);
      admin.time.now = midnight + 5 * minute;
    });

    test("the summary covers only today", async () => {
      expect(await get("/api/usage/summary")).toEqual({
        date: "2026-05-02",
        request_count: 2,
        input_tokens: 25,
        output_tokens: 36,
        total_tokens: 61,
      });
    });

    test("the total covers everything", async () => {
      expect(await get("/api/usage/total")).toEqual({
        request_count: 4,
        input_tokens: 126,
        output_tokens: 48,
        total_tokens: 174,
      });
    });

    test("daily rows are ordered by day, latest first, and then by key", async () => {
      expect(await get("/api/usage/daily?days=7")).toEqual([
        { date: "2026-05-02", key_id: 1, key_name: "first", request_count: 2, input_tokens: 25, output_tokens: 36 },
        { date: "2026-05-01", key_id: 1, key_name: "first", request_count: 1, input_tokens: 1, output_tokens: 2 },
        { date: "2026-05-01", key_id: 2, key_name: "second", request_count: 1, input_tokens: 100, output_tokens: 10 },
      ]);
    });

    test("history has buckets of Seoul time, ordered by time and then by key, and omits keys without traffic", async () => {
      const { days, bucket_minutes, points } = await get("/api/usage/history?days=1&bucket_minutes=7");
      expect([days, bucket_minutes]).toEqual([1, 7]);
      const starts = points.map((point: Record<string, unknown>) => [
        point["bucket_start"],
        point["key_id"],
        point["input_tokens"],
      ]);
      // Midnight is minute 29,628,000 in Seoul, the 4th of its bucket of 7.
      expect(starts).toEqual([
        ["2026-05-01T23:57:00.000+09:00", 1, 21],
        ["2026-05-01T23:57:00.000+09:00", 2, 100],
        ["2026-05-02T00:04:00.000+09:00", 1, 5],
      ]);
    });
  });

  describe("the time window", () => {
    let keyId: number;
    const admin = shared(() => startAdmin({ engine }));
    const owner = shared(() => admin.login());
    beforeAll(async () => {
      keyId = (await admin.createKey("old")).id;
    });

    test("of daily usage includes the day exactly `days` ago", async () => {
      admin.time.now = midnight;
      await admin.store.usage.add([
        closed(keyId, midnight - 7 * 1440 * minute, 7, 0),
        closed(keyId, midnight - 7 * 1440 * minute - 1, 8, 0),
      ]);
      const { json } = await admin.send("GET", "/api/usage/daily?days=7", { as: owner });
      expect(json.map(({ date }: { date: string }) => date)).toEqual(["2026-04-25"]);
      const more = await admin.send("GET", "/api/usage/daily?days=8", { as: owner });
      expect(more.json.map(({ date }: { date: string }) => date)).toEqual(["2026-04-25", "2026-04-24"]);
    });

    test("of the history begins `days` × 24 hours ago to the minute, even within a bucket", async () => {
      admin.time.now = midnight + 12.5 * minute;
      const since = admin.time.now - 1440 * minute;
      await admin.store.usage.add([closed(keyId, since - minute, 1, 0), closed(keyId, since, 20, 0)]);
      const { json } = await admin.send("GET", "/api/usage/history?days=1&bucket_minutes=10", { as: owner });
      expect(json.points).toMatchObject([{ bucket_start: "2026-05-01T00:10:00.000+09:00", input_tokens: 20 }]);
    });
  });
});

describe("query parameters", () => {
  const admin = shared(() => startAdmin());
  const owner = shared(() => admin.login());

  const daysOfDaily = "days must be an integer from 7 to 365";
  const daysOfHistory = "days must be an integer from 1 to 30";
  const buckets = "bucket_minutes must be an integer from 1 to 1440";
  const nonsense = [
    "",
    "x",
    "-7",
    "+7",
    "7.0",
    "7.5",
    "1e1",
    "0x7",
    " 7",
    "7 ",
    "٧",
    "NaN",
    "null",
    "[7]",
    "7,8",
    "99999999999999999999",
    "\0",
  ];

  test.each([
    ["/api/usage/daily", "days", ["6", "366", "0", ...nonsense], daysOfDaily],
    ["/api/usage/history", "days", ["0", "31", ...nonsense], daysOfHistory],
    ["/api/usage/history", "bucket_minutes", ["0", "1441", ...nonsense], buckets],
    ["/api/gpu-stats/power-history", "days", ["0", "31", ...nonsense], daysOfHistory],
    ["/api/gpu-stats/power-history", "bucket_minutes", ["0", "1441", ...nonsense], buckets],
  ])("%s refuses an invalid %s and names the allowed range", async (path, name, values, error) => {
    for (const value of values) {
      const response = await admin.send("GET", `${path}?${name}=${encodeURIComponent(value)}`, { as: owner });
      expect([value, response.status, response.json]).toEqual([value, 400, { error }]);
    }
  });

  test.each([
    ["/api/usage/daily?days=7", {}],
    ["/api/usage/daily?days=365", {}],
    ["/api/usage/history", { days: 7, bucket_minutes: 5 }],
    ["/api/usage/history?days=30&bucket_minutes=1440", { days: 30, bucket_minutes: 1440 }],
    ["/api/usage/history?bucket_minutes=1", { days: 7, bucket_minutes: 1 }],
    ["/api/usage/history?days=1&other=x&__proto__=1", { days: 1, bucket_minutes: 5 }],
    ["/api/gpu-stats/power-history", { days: 7, bucket_minutes: 5 }],
    ["/api/gpu-stats/power-history?days=30&bucket_minutes=7", { days: 30, bucket_minutes: 7 }],
  ])("%s is accepted", async (path, echoed) => {
    const response = await admin.send("GET", path, { as: owner });
    expect(response.status).toBe(200);
    expect(response.json).toMatchObject(echoed);
  });

  test("a request without a session gets 401 even if its query is invalid", async () => {
    expect((await admin.send("GET", "/api/usage/daily?days=x")).status).toBe(401);
  });
});

test("the responses do not depend on the time zone of the process", async () => {
  const reports = await Promise.all(
    ["UTC", "America/Los_Angeles", "Pacific/Kiritimati"].map(async (zone) => {
      const child = Bun.spawn([process.execPath, `${import.meta.dir}/../support/zone-report.ts`], {
        env: { ...process.env, TZ: zone },
        stdout: "pipe",
      });
      const [text, status] = await Promise.all([new Response(child.stdout).text(), child.exited]);
      expect(status).toBe(0);
      return JSON.parse(text) as { hours: number; responses: string[] };
    }),
  );
  // The processes ran in different time zones.
  expect(new Set(reports.map(({ hours }) => hours)).size).toBe(3);
  expect(reports[0]?.responses.join("")).toContain("2026-05-02T00:00:00.000+09:00");
  expect(reports[1]?.responses).toEqual(reports[0]?.responses ?? []);
  expect(reports[2]?.responses).toEqual(reports[0]?.responses ?? []);
});
