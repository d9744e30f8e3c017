import { beforeAll, expect, test } from "bun:test";
import { Histogram } from "../../../src/domain/histogram.ts";
import { minuteOf } from "../../../src/time/seoul.ts";
import { onEachEngine } from "../../store/each-engine.ts";
import { startAdmin } from "../support/admin-server.ts";
import { shared } from "../../support/shared.ts";

onEachEngine(({ engine }) => {
  const admin = shared(() => startAdmin({ engine }));
  const owner = shared(() => admin.login());
  beforeAll(async () => {
    await admin.createKey("first");
    const now = minuteOf(admin.time.now);
    const latency = (minute: number, model: string, values: number[]) => ({
      minute,
      model,
      requestCount: values.length,
      firstByte: histogramOf(values),
      duration: histogramOf(values.map((value) => value * 10)),
      tokensPerSecond: "",
      queueWait: histogramOf(values),
    });
    const failure = {
      minute: now,
      keyId: 1,
      outcome: "timed_out",
      code: "upstream_timeout",
      count: 3,
      lastAt: admin.time.now,
    };
    await admin.store.traffic.add({
      latencies: [
        latency(
          now - 6,
          "a",
          Array.from({ length: 100 }, (_, n) => n + 1),
        ),
        latency(now, "a", [1000]),
        latency(now, "b", [2000]),
        latency(now - 3000, "a", [5]),
      ],
      outcomes: [
        { ...failure, outcome: "completed", code: "", count: 90 },
        failure,
        { ...failure, minute: now - 6, count: 1, lastAt: 1 },
        { ...failure, keyId: 0, outcome: "refused", code: "invalid_api_key", count: 50 },
      ],
      backends: [],
    });
  });

  function histogramOf(values: number[]): string {
    const histogram = new Histogram();
    for (const value of values) histogram.add(value);
    return histogram.toText();
  }

  const get = (path: string) => admin.send("GET", path, { as: owner });
  const isNear = (found: number, exact: number): boolean => Math.abs(found - exact) / exact < 0.05;

  test("latencies have quantiles by bucket and of the whole time, at most 5 % off", async () => {
    const { json } = await get("/api/latency?hours=1&bucket_minutes=5");
    expect(json).toMatchObject({ hours: 1, bucket_minutes: 5, by: "all" });
    expect(
      json.points.map((one: { bucket_start: string; request_count: number }) => [one.bucket_start, one.request_count]),
    ).toEqual([
      ["2026-05-01T11:50:00.000+09:00", 100],
      ["2026-05-01T12:00:00.000+09:00", 2],
    ]);
    const { first_byte_ms: first, tokens_per_second: speed, queue_wait_ms: queue } = json.points[0];
    expect(speed).toBeNull();
    expect(queue).toEqual(first);
    expect(first.count).toBe(100);
    for (const [name, exact] of [
      ["p5", 5],
      ["p50", 50],
      ["p95", 95],
      ["p99", 99],
    ] as const) {
      expect([name, isNear(first[name], exact)]).toEqual([name, true]);
    }
    expect(json.totals).toMatchObject([{ model: null, request_count: 102 }]);
  });

  test("latencies are split by model, or of one model, and by hour in long windows", async () => {
    const { json } = await get("/api/latency?by=model&bucket_minutes=60");
    expect(json.totals.map((one: { model: string; request_count: number }) => [one.model, one.request_count])).toEqual([
      ["a", 101],
      ["b", 1],
    ]);
    expect((await get("/api/latency?model=b")).json.totals).toMatchObject([{ request_count: 1 }]);
    expect((await get("/api/latency?hours=720&bucket_minutes=1440&model=a")).json.totals).toMatchObject([
      { request_count: 102 },
    ]);
  });

  test("failures are counted by bucket, and by outcome, code and key", async () => {
    const { json } = await get("/api/failures?hours=1&bucket_minutes=60");
    expect(json.points).toEqual([
      { bucket_start: "2026-05-01T11:00:00.000+09:00", request_count: 1, failed_count: 1, outcomes: { timed_out: 1 } },
      {
        bucket_start: "2026-05-01T12:00:00.000+09:00",
        request_count: 143,
        failed_count: 53,
        outcomes: { completed: 90, timed_out: 3, refused: 50 },
      },
    ]);
    expect(json.rows).toEqual([
      {
        outcome: "refused",
        code: "invalid_api_key",
        key_id: null,
        key_name: null,
        count: 50,
        last_at: "2026-05-01T12:00:00.000+09:00",
      },
      {
        outcome: "timed_out",
        code: "upstream_timeout",
        key_id: 1,
        key_name: "first",
        count: 4,
        last_at: "2026-05-01T12:00:00.000+09:00",
      },
    ]);
    expect((await get("/api/failures?key_id=1")).json.rows).toHaveLength(1);
  });

  test.each([
    ["hours=48", 5],
    ["hours=49", 60],
    ["hours=72&bucket_minutes=61", 120],
    ["hours=720&bucket_minutes=1440", 1440],
  ])("windows of %s have buckets of %d minutes", async (query, minutes) => {
    for (const path of ["latency", "failures"]) {
      const { status, json } = await get(`/api/${path}?${query}`);
      expect([status, json.bucket_minutes]).toEqual([200, minutes]);
      for (const { bucket_start } of json.points)
        expect(Date.parse(bucket_start.replace("+09:00", "Z")) % (minutes * 60_000)).toBe(0);
    }
  });

  test.each([
    ["/api/latency?hours=0", "hours must be an integer from 1 to 720"],
    ["/api/latency?hours=721", "hours must be an integer from 1 to 720"],
    ["/api/latency?bucket_minutes=1441", "bucket_minutes must be an integer from 1 to 1440"],
    ["/api/latency?by=key", "by must be one of all, model"],
    ["/api/failures?key_id=0", "key_id must be an integer of at least 1"],
    ["/api/failures?hours=1.5", "hours must be an integer from 1 to 720"],
  ])("%s gets 400", async (path, error) => {
    const response = await get(path);
    expect([response.status, response.json]).toEqual([400, { error }]);
  });
});
