import { beforeAll, describe, expect, test } from "bun:test";
import { defaultRetention } from "../../../src/store/retention.ts";
import { onEachEngine } from "../../store/each-engine.ts";
import { maintain, usageAt } from "../../store/test-store.ts";
import { pollUntil } from "../../support/poll-until.ts";
import { shared } from "../../support/shared.ts";
import { startAdmin } from "../support/admin-server.ts";

const minute = 60_000;
const day = 1440 * minute;
/** The clock of the test server. */
const noon = Date.parse("2026-05-01T12:00:00+09:00");

const closed = (keyId: number, at: number, outputTokens: number) =>
  usageAt(keyId, at, { inputTokens: 2 * outputTokens, outputTokens });

onEachEngine(({ engine }) => {
  describe("the usage chart", () => {
    const get = async (path: string) => (await admin.send("GET", path, { as: owner })).json;
    const chart = (query = "") => get(`/api/usage/chart?${query}`);
    const admin = shared(() => startAdmin({ engine }));
    const owner = shared(() => admin.login());
    beforeAll(async () => {
      for (const name of ["first", "second", "third"]) await admin.createKey(name);
      await admin.store.usage.add([
        closed(1, noon, 5),
        closed(1, noon - 12 * minute, 10),
        closed(2, noon - 12 * minute, 40),
        closed(3, noon - 60 * minute, 7),
        closed(3, noon - 100 * day, 9),
      ]);
    });

    test("has the last 24 hours by default, with the bucket of now", async () => {
      const body = await chart();
      expect(body).toMatchObject({
        from: "2026-04-30T12:00:00.000+09:00",
        to: "2026-05-01T12:05:00.000+09:00",
        first_bucket: "2026-04-30T12:00:00.000+09:00",
        bucket_minutes: 5,
        metric: "output",
        key_count: 3,
        request_count: 4,
        input_tokens: 124,
        output_tokens: 62,
        keys: {
          id: [2, 1, 3],
          name: ["second", "first", "third"],
          request_count: [1, 2, 1],
          input_tokens: [80, 30, 14],
          output_tokens: [40, 15, 7],
        },
        other: { key_count: 0, request_count: 0, input_tokens: 0, output_tokens: 0, values: [] },
      });
      const [second, first] = body.series;
      expect(first).toEqual({ key_id: 1, values: [...Array(285).fill(0), 10, 0, 0, 5] });
      expect(second.values).toHaveLength(289);
    });

    test("names no keys if it is to list none, which have their series all the same", async () => {
      const { keys, series } = await chart("top=1000&list=0&bucket_minutes=60");
      expect(keys).toEqual({ id: [], name: [], request_count: [], input_tokens: [], output_tokens: [] });
      expect(series.map(({ key_id }: { key_id: number }) => key_id)).toEqual([2, 1, 3]);
    });

    test("has what the query selects, and one column for the other keys", async () => {
      const query =
        "from=2026-05-01T11:00:00%2B09:00&to=2026-05-01T03:00:00Z&bucket_minutes=30&metric=requests&top=1&list=1&key_id=1";
      expect(await chart(query)).toEqual({
        from: "2026-05-01T11:00:00.000+09:00",
        to: "2026-05-01T12:00:00.000+09:00",
        bucket_minutes: 30,
        metric: "requests",
        first_bucket: "2026-05-01T11:00:00.000+09:00",
        key_count: 1,
        request_count: 1,
        input_tokens: 20,
        output_tokens: 10,
        keys: { id: [1], name: ["first"], request_count: [1], input_tokens: [20], output_tokens: [10] },
        series: [{ key_id: 1, values: [0, 1] }],
        other: { key_count: 0, request_count: 0, input_tokens: 0, output_tokens: 0, values: [] },
      });
      expect(await chart("key_id=3&metric=total")).toMatchObject({ key_count: 1, output_tokens: 7, keys: { id: [3] } });
      // Hours are the narrowest that a team or a model has, and days where hours are no longer kept.
      expect(await chart("by=model&bucket_minutes=5")).toMatchObject({ bucket_minutes: 60, keys: { id: [""] } });
      expect(await chart("team_id=0")).toMatchObject({ bucket_minutes: 60, request_count: 4 });
      const longAgo = `from=${new Date(noon - 101 * day).toISOString()}&bucket_minutes=60`;
      expect(await chart(`by=user&${longAgo}`)).toMatchObject({ bucket_minutes: 1440, request_count: 5 });
      expect(await chart("key_id=0")).toMatchObject({ key_count: 0, series: [], keys: { id: [] } });
    });

    test("has only the buckets since a time for a client that has those before", async () => {
      const since = "since=2026-05-01T11:57:00%2B09:00";
      const rest = await chart(`${since}&have=3,1,2`);
      expect(rest.first_bucket).toBe("2026-05-01T11:55:00.000+09:00");
      expect(rest.series).toEqual([
        { key_id: 2, values: [0, 0] },
        { key_id: 1, values: [0, 5] },
        { key_id: 3, values: [0, 0] },
      ]);
      expect(rest.output_tokens).toBe(62);
      for (const have of ["", "&have=3", "&have=1,2", "&have=1,1,2", "&have=1,2,3,4"])
        expect(await chart(since + have)).toEqual(await chart());
      expect(await chart("since=2020-01-01T00:00Z&have=1,2,3")).toEqual(await chart());
    });

    test("reaches back a year in hours and days", async () => {
      const from = `from=${new Date(noon - 365 * day).toISOString()}`;
      const year = await chart(`${from}&bucket_minutes=1440`);
      expect(year.series).toHaveLength(3);
      expect(year.series[1].values).toHaveLength(366);
      expect(year.series[1]).toMatchObject({ key_id: 3 });
      expect(year.output_tokens).toBe(71);
      expect((await chart(`${from}&to=2026-01-22T00:00Z&bucket_minutes=360`)).output_tokens).toBe(9);
    });

    const timestampError = (name: string): string =>
      `${name} must be a timestamp with an offset, such as 2026-05-01T09:00:00+09:00`;

    test.each([
      [
        "from",
        ["", "x", "2026-05-01", "2026-05-01T09:00", "2026-05-01T25:00Z", "2026-13-01T00:00Z", "2026-02-30T00:00Z", "1"],
        timestampError("from"),
      ],
      ["to", ["now", "2026-05-01T09:00 09:00"], timestampError("to")],
      ["since", ["0", "2026-05-01T24:61Z"], timestampError("since")],
      [
        "have",
        ["x", "1,,2", "-1", "1,2,", "1 2", "1.5", `1${",1".repeat(1000)}`, "9".repeat(16)],
        "have must be at most 1000 ids, separated by commas",
      ],
      ["bucket_minutes", ["0", "1441", "x"], "bucket_minutes must be an integer from 1 to 1440"],
      ["top", ["-1", "1001", ""], "top must be an integer from 0 to 1000"],
      ["list", ["-1", "1001", "0x5"], "list must be an integer from 0 to 1000"],
      ["metric", ["", "tokens", "__proto__"], "metric must be requests, input, output or total"],
      ["key_id", ["x", "-1", "1.5", "99999999999999999999"], "key_id must be the id of a key"],
      ["by", ["", "day"], "by must be one of key, team, user, model"],
      ["tag", ["x".repeat(513)], "tag must be at most 512 characters"],
    ])("refuses an invalid %s and says what is allowed", async (name, values, error) => {
      for (const value of values) {
        const path = `/api/usage/chart?${name}=${encodeURIComponent(value)}`;
        const { status, json } = await admin.send("GET", path, { as: owner });
        expect([value, status, json]).toEqual([value, 400, { error }]);
      }
    });

    test.each([
      ["from=2026-05-01T10:00Z&to=2026-05-01T09:00Z", "from must be before to and not in the future"],
      ["from=2026-05-01T01:00Z&to=2026-05-01T01:00Z", "from must be before to and not in the future"],
      ["from=2026-05-01T04:00Z", "from must be before to and not in the future"],
      ["from=2024-01-01T00:00Z&bucket_minutes=1440", "from must be at most 366 days ago"],
      [
        "from=2026-03-01T00:00Z&bucket_minutes=90",
        "bucket_minutes must be a multiple of 60 if from is more than 31 days ago",
      ],
      ["from=2026-04-20T00:00Z&bucket_minutes=5", "bucket_minutes must divide the time into at most 2000 buckets"],
    ])("refuses %s", async (query, error) => {
      const { status, json } = await admin.send("GET", `/api/usage/chart?${query}`, { as: owner });
      expect([status, json]).toEqual([400, { error }]);
    });
  });

  test("where minutes were deleted before they were to be kept for longer, a chart has the same sums as its columns", async () => {
    const retention = { ...defaultRetention, usageMinutesDays: 1 };
    const admin = await startAdmin({ engine, retention });
    const owner = await admin.login();
    await admin.createKey("first");
    await admin.store.usage.add([closed(1, noon - 5 * day, 5), closed(1, noon - 5 * day + 61 * minute, 6)]);
    await admin.store.usage.add([closed(1, noon, 7)]);
    const query = `from=${new Date(noon - 6 * day).toISOString()}&bucket_minutes=20`;
    // Each round deletes some of them, or none if another process is at it.
    await pollUntil(async () => {
      retention.usageMinutesDays = 1;
      await maintain(admin.store);
      retention.usageMinutesDays = 30;
      return (await admin.send("GET", `/api/usage/chart?${query}`, { as: owner })).json.bucket_minutes === 60;
    });
    for (const report of ["chart", "history"]) {
      const path = `/api/usage/${report}?${report === "history" ? "days=6&bucket_minutes=20" : query}`;
      const { json } = await admin.send("GET", path, { as: owner });
      const values: number[] =
        json.series?.[0].values ?? json.points.map((point: { output_tokens: number }) => point.output_tokens);
      const sum = values.reduce((a, b) => a + b, 0);
      expect([report, json.bucket_minutes, sum, json.output_tokens ?? 18]).toEqual([report, 60, 18, 18]);
    }
    const later = `/api/usage/chart?from=${new Date(noon - 4 * day).toISOString()}&bucket_minutes=20`;
    expect((await admin.send("GET", later, { as: owner })).json).toMatchObject({
      bucket_minutes: 20,
      output_tokens: 7,
    });
  });

  describe("where the counts by the minute are no longer kept", () => {
    const get = async (path: string) => (await admin.send("GET", path, { as: owner })).json;
    const reports = ["chart", "history"] as const;
    const sevenDays = `from=${new Date(noon - 7 * day).toISOString()}&days=7`;
    const admin = shared(() => startAdmin({ engine, retention: { ...defaultRetention, usageMinutesDays: 1 } }));
    const owner = shared(() => admin.login());
    beforeAll(async () => {
      for (const name of ["first", "second"]) await admin.createKey(name);
      await admin.store.usage.add([closed(1, noon - 5 * day, 5), closed(2, noon - 5 * day + 61 * minute, 6)]);
      // These flushes delete the minutes of the one before, and then of five minutes more each.
      for (let ago = 15; ago >= 0; ago--) {
        admin.time.now = noon - ago * minute;
        await admin.store.usage.add([closed(1, admin.time.now, 1)]);
      }
    });

    test("a chart has the same sums as its columns, in hours", async () => {
      const { bucket_minutes, output_tokens, series, from } = await get(
        `/api/usage/chart?${sevenDays}&bucket_minutes=20`,
      );
      expect([bucket_minutes, output_tokens, from]).toEqual([60, 27, "2026-04-24T12:00:00.000+09:00"]);
      const values = series.map((one: { values: number[] }) => one.values.filter((value) => value > 0));
      expect(values).toEqual([[5, 15, 1], [6]]);
    });

    test.each([
      [5, 60],
      [60, 60],
      [61, 120],
      [90, 120],
      [120, 120],
      [1439, 1440],
    ])("buckets of %d minutes become %d wide, and nothing is missing", async (requested, width) => {
      for (const report of reports) {
        const body = await get(`/api/usage/${report}?${sevenDays}&bucket_minutes=${requested}`);
        const total = body.points?.reduce(
          (sum: number, point: { output_tokens: number }) => sum + point.output_tokens,
          0,
        );
        expect([report, body.bucket_minutes, total ?? body.output_tokens]).toEqual([report, width, 27]);
      }
    });

    test("later buckets are as wide as requested", async () => {
      for (const report of reports) {
        const query = `from=${new Date(noon - 2 * day).toISOString()}&days=2&bucket_minutes=5`;
        expect(await get(`/api/usage/${report}?${query}`)).toMatchObject({ bucket_minutes: 5 });
      }
    });

    test("a client that has wider buckets gets those that it lacks", async () => {
      const known = "since=2026-05-01T11:30:00%2B09:00&have=1,2";
      expect(await get(`/api/usage/chart?${sevenDays}&bucket_minutes=20&${known}`)).toMatchObject({
        bucket_minutes: 60,
        first_bucket: "2026-05-01T11:00:00.000+09:00",
        series: [{ values: [15, 1] }, { values: [0, 0] }],
      });
    });

    test("buckets within the hour are refused from 31 days on, as with any setting", async () => {
      const path = `/api/usage/chart?from=${new Date(noon - 32 * day).toISOString()}&bucket_minutes=30`;
      expect((await admin.send("GET", path, { as: owner })).status).toBe(400);
    });
  });
});
