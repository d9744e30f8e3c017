import { describe, expect, test } from "bun:test";
import { aggregatedMetricsText, type Metrics } from "../../src/telemetry/metrics.ts";
import { steadyValues } from "../support/steady-values.ts";
import { openMetrics, valueOf } from "./open-metrics.ts";

describe("what takes time to find out", () => {
  const scrapeTwice = async (metrics: Metrics): Promise<string> => {
    await metrics.text();
    return await metrics.text();
  };

  test("is reported as of the scrape before", async () => {
    using metrics = openMetrics();
    expect(valueOf(await metrics.text(), "tollgate_upstream_up")).toBeUndefined();
    const text = await metrics.text();
    const values = [
      "tollgate_upstream_up",
      "tollgate_database_bytes",
      "tollgate_database_log_bytes",
      "tollgate_disk_free_bytes",
      "tollgate_disk_size_bytes",
      "tollgate_backup_last_success_timestamp_seconds",
    ].map((name) => valueOf(text, name));
    expect(values).toEqual([1, 4096, 512, 1e9, 1e10, 1.7e9]);
  });

  test("has no series until it is found out", async () => {
    const fails = () => Promise.reject(new Error("away"));
    using metrics = openMetrics({ slow: { upstreamUp: async () => false, database: fails, disk: fails } });
    const text = await scrapeTwice(metrics);
    expect(valueOf(text, "tollgate_upstream_up")).toBe(0);
    expect(valueOf(text, "tollgate_database_bytes")).toBeUndefined();
    expect(valueOf(text, "tollgate_disk_free_bytes")).toBeUndefined();
  });

  test("keeps its last value while it cannot be found out, and counts the failures", async () => {
    let size = async () => ({ bytes: 4096, logBytes: 512 });
    using metrics = openMetrics({ slow: { ...steadyValues, database: () => size() } });
    await scrapeTwice(metrics);
    size = () => Promise.reject(new Error("away"));
    const text = await scrapeTwice(metrics);
    expect(valueOf(text, "tollgate_database_bytes")).toBe(4096);
    expect(valueOf(text, 'tollgate_collector_errors_total{collector="tollgate_database_bytes"}')).toBe(1);
    expect(valueOf(text, "tollgate_disk_free_bytes")).toBe(1e9);
  });

  test("delays no scrape, and is asked for once at a time", async () => {
    let asked = 0;
    const hangs = () => {
      asked++;
      return new Promise<never>(() => {});
    };
    using metrics = openMetrics({ slow: { ...steadyValues, upstreamUp: hangs } });
    await scrapeTwice(metrics);
    expect(asked).toBe(1);
  });

  test("is the worst of several processes, and not a sum", async () => {
    using up = openMetrics();
    using down = openMetrics({ slow: { ...steadyValues, upstreamUp: async () => false } });
    await Promise.all([up.text(), down.text()]);
    const text = await aggregatedMetricsText([await up.snapshot(), await down.snapshot()]);
    expect(valueOf(text, "tollgate_upstream_up")).toBe(0);
    expect(valueOf(text, "tollgate_disk_free_bytes")).toBe(1e9);
    expect(valueOf(text, "tollgate_database_bytes")).toBe(4096);
  });
});
