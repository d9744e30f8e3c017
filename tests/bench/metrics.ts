/** The cost of counting one finished request: `bun tests/bench/metrics.ts`. */
import { createMetrics } from "../../src/telemetry/metrics.ts";
import type { RequestRecord } from "../../src/domain.ts";
import { steadySamples } from "../support/steady-samples.ts";

const requests = 500_000;

const record: RequestRecord = {
  requestId: "req-1",
  clientAddress: "192.0.2.7",
  method: "POST",
  path: "/v1/chat/completions",
  status: 200,
  outcome: "completed",
  keyId: 7,
  modelAsked: "claude-x",
  modelSent: "served",
  code: undefined,
  cause: undefined,
  receivedBytes: 5_000,
  streamed: true,
  upstreamMs: 180,
  firstByteMs: 200,
  durationMs: 4200,
  usage: { inputTokens: 1200, outputTokens: 350 },
};

for (const perKey of [false, true]) {
  const metrics = createMetrics({
    version: "0.0.0",
    commit: "bench",
    perKey,
    waiting: () => ({ requests: 0, keys: 0, sinceMs: 0 }),
    refusedRequests: () => 0,
    inFlight: () => 0,
    samples: steadySamples,
    droppedRequests: () => 0,
    tokenless: () => 0,
  });
  const countAll = () => {
    for (let request = 0; request < requests; request += 1) {
      record.keyId = request % 100;
      metrics.started();
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
