import { expect, test } from "bun:test";
import type { StoredLatency, StoredTraffic } from "../../../src/store/traffic/contract.ts";
import type { Engine } from "../../../src/store/engine/engine.ts";
import { createSqlStore } from "../../../src/store/sql-store.ts";
import { minuteOf } from "../../../src/time/seoul.ts";
import { onEachEngine } from "../each-engine.ts";

const start = Date.parse("2026-05-02T12:00:00+09:00");
const minute = minuteOf(start);

const latency = (fields: Partial<StoredLatency> = {}): StoredLatency => ({
  minute,
  model: "m",
  requestCount: 1,
  firstByte: "5:1",
  duration: "7:1 9:2",
  tokensPerSecond: "",
  queueWait: "",
  ...fields,
});
const traffic = (fields: Partial<StoredTraffic>): StoredTraffic => ({
  latencies: [],
  outcomes: [],
  backends: [],
  ...fields,
});
const window = { from: minute, to: minute + 60, byHour: false, bucketMinutes: 1 };
const hours = { ...window, byHour: true, bucketMinutes: 60 };

onEachEngine(({ openTestEngine, openTestStore }) => {
  test("latencies add up by minute and by hour", async () => {
    await using opened = await openTestStore(() => start);
    const { traffic: store } = opened.store;
    await store.add(traffic({ latencies: [latency(), latency({ minute: minute + 59 })] }));
    await store.add(
      traffic({ latencies: [latency({ duration: "9:1", queueWait: "11:1" }), latency({ model: "n\0" })] }),
    );
    expect(await store.latencies(window)).toEqual([
      latency({ requestCount: 2, firstByte: "5:2", duration: "7:1 9:3", queueWait: "11:1" }),
      latency({ model: "n\ufffd" }),
      latency({ minute: minute + 59 }),
    ]);
    expect(await store.latencies(hours, { model: "m" })).toEqual([
      latency({ requestCount: 3, firstByte: "5:3", duration: "7:2 9:5", queueWait: "11:1" }),
    ]);
    expect(await store.latencies({ ...window, to: minute + 59 }, { model: "m" })).toHaveLength(1);
    expect(await store.latencies({ ...window, bucketMinutes: 30 }, { allModels: true })).toEqual([
      latency({ model: "", requestCount: 3, firstByte: "5:3", duration: "7:2 9:5", queueWait: "11:1" }),
      latency({ model: "", minute: minute + 30 }),
    ]);
  });

  test("histograms add up whether or not consecutive buckets are joined", async () => {
    await using opened = await openTestEngine(() => start);
    const { traffic: store } = opened.store;
    const durations = ["7:1 8:2 20:1", "9:1 8:2", "20:3:1"];
    for (const duration of durations) await store.add(traffic({ latencies: [latency({ duration })] }));
    expect((await store.latencies(window))[0]).toMatchObject({ requestCount: 3, duration: "7:1:4:1 20:4:1" });
    await store.add(traffic({ latencies: [latency({ model: "n", duration: "8:1 6:1", tokensPerSecond: "3:1" })] }));
    expect(await store.latencies(window, { allModels: true })).toEqual([
      latency({
        model: "",
        requestCount: 4,
        firstByte: "5:4",
        duration: "6:1:1:5:1 20:4:1",
        tokensPerSecond: "3:1",
      }),
    ]);
  });

  test("an hour has latencies of 50 models and of the rest together", async () => {
    await using opened = await openTestEngine(() => start);
    const { traffic: store } = opened.store;
    await store.add(traffic({ latencies: Array.from({ length: 60 }, (_, n) => latency({ model: `m${n}` })) }));
    const found = await store.latencies(hours);
    expect(found).toHaveLength(51);
    expect(found.find(({ model }) => model === "other")).toMatchObject({ requestCount: 10 });
  });

  test("an outage of many keys is added up the same, and on PostgreSQL by the database", async () => {
    await using opened = await openTestEngine(() => start);
    const { engine } = opened;
    let rowsRead = 0;
    const rows: Engine["rows"] = async (...args) => {
      const found = await engine.rows(...(args as Parameters<Engine["rows"]>));
      rowsRead += found.length;
      return found as never;
    };
    const { traffic: store } = createSqlStore({ ...engine, rows }, () => start);
    const outcomes = Array.from({ length: 20 * 60 }, (_, n) => ({
      minute: minute + (n % 60),
      keyId: 1 + Math.floor(n / 60),
      outcome: "upstream_failed",
      code: n % 2 === 0 ? "upstream_unreachable" : "upstream_timeout",
      count: 1 + (n % 60 === 0 ? Math.floor(n / 60) : 0),
      lastAt: start + n,
    }));
    await store.add(traffic({ outcomes }));
    const { points, failures } = await store.outcomes({ ...window, bucketMinutes: 60 }, 2);
    expect(points).toEqual([{ minute, outcome: "upstream_failed", count: 1390, failedCount: 1390 }]);
    const failure = { minute: 0, outcome: "upstream_failed", code: "upstream_unreachable" };
    expect(failures).toEqual([
      { ...failure, keyId: 20, count: 49, lastAt: start + 1198 },
      { ...failure, keyId: 19, count: 48, lastAt: start + 1138 },
    ]);
    if (engine.groupsRows) expect(rowsRead).toBeLessThan(100);
  });
});
