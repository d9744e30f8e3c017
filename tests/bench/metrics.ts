/** The cost of counting one finished request: `bun tests/bench/metrics.ts`. */
import { createMetrics } from "../../src/telemetry/metrics.ts";
import { requestRecord } from "../support/request-record.ts";
import { steadyValues } from "../support/steady-values.ts";

const requests = 500_000;

const record = requestRecord({ durationMs: 4200 });

for (const perKey of [false, true]) {
  const metrics = createMetrics({
    version: "0.0.0",
    commit: "bench",
    perKey,
    waiting: () => ({ requests: 0, keys: 0, sinceMs: 0 }),
    refusedRequests: () => 0,
    areLimitsDegraded: () => false,
    inFlight: () => 0,
    slow: steadyValues,
    droppedRequests: () => 0,
  });
  const countAll = () => {
    for (let request = 0; request < requests; request += 1) {
      record.keyId = request % 100;
      metrics.finished(record);
    }
  };
  countAll();
  const started = Bun.nanoseconds();
  countAll();
  const nsPerRequest = (Bun.nanoseconds() - started) / requests;
  const scrapeStarted = Bun.nanoseconds();
  const { length } = await metrics.text();
  const scrapeMs = (Bun.nanoseconds() - scrapeStarted) / 1e6;
  console.log(
    `per key ${perKey ? "on" : "off"}: ${nsPerRequest.toFixed(0)} ns per request; ` +
      `a scrape of ${length} characters ${scrapeMs.toFixed(1)} ms`,
  );
  metrics.close();
}
