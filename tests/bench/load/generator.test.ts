import { describe, expect, test } from "bun:test";
import { startSimulator } from "../../support/simulator/simulator.ts";
import { generateLoad } from "./generator.ts";
import { createHistogram } from "./histogram.ts";
import type { LoadSpec } from "./spec.ts";
import { shared } from "../../support/shared.ts";

const backend = shared(() => startSimulator({ defaultOutputTokens: 8 }));

const body = (fields: object): string =>
  JSON.stringify({ model: "m", messages: [{ role: "user", content: "Hi" }], max_tokens: 8, ...fields });

const specOf = (spec: Partial<LoadSpec>): LoadSpec => ({
  port: Number(new URL(backend.url).port),
  path: "/v1/chat/completions",
  headers: [],
  keys: ["a", "b"],
  body: body({}),
  connections: 4,
  requests: 40,
  perSecond: 0,
  stallMs: 0,
  limitMs: 20_000,
  ...spec,
});

describe("the load generator", () => {
  test("sends the given number of requests and reads the usage that the backend reports", async () => {
    const before = backend.stats().reported;
    const { statuses, usage, latency } = await generateLoad(specOf({}));
    const after = backend.stats().reported;
    expect(statuses).toEqual({ 200: 40 });
    expect(usage).toEqual({
      requests: 40,
      inputTokens: after.inputTokens - before.inputTokens,
      outputTokens: after.outputTokens - before.outputTokens,
    });
    expect(usage.outputTokens).toBe(40 * 8);
    expect(latency.p50).toBeGreaterThan(0);
  });

  test("counts every event of streams, wherever their bytes are cut", async () => {
    const streamed = body({ stream: true, stream_options: { include_usage: true } });
    const whole = await generateLoad(specOf({ body: streamed, stallMs: 10_000, requests: 8 }));
    // The role, eight tokens, the finish reason, the usage and the end.
    expect(whole.frames).toBe(8 * 12);
    const cut = await generateLoad(
      specOf({ body: streamed, stallMs: 10_000, requests: 8, headers: ["x-simulate: split=7"] }),
    );
    expect([cut.frames, cut.usage, cut.stalls]).toEqual([whole.frames, whole.usage, 0]);
  });

  test("detects a stall inside a stream and a broken response", async () => {
    const streamed = body({ stream: true });
    const stalled = await generateLoad(
      specOf({ body: streamed, stallMs: 100, requests: 1, headers: ["x-simulate: gap=300ms@3"] }),
    );
    expect(stalled.stalls).toBe(1);
    const broken = await generateLoad(
      specOf({ body: streamed, stallMs: 1000, requests: 1, headers: ["x-simulate: die@3"] }),
    );
    expect(broken.statuses).toEqual({ 0: 1 });
    expect(broken.usage.requests).toBe(0);
  });
});

test("a histogram is accurate to five microseconds for quantiles and exact for the maximum", () => {
  const histogram = createHistogram();
  expect(histogram.quantiles()).toEqual({ p50: 0, p99: 0, max: 0 });
  for (let us = 1; us <= 1000; us++) histogram.add(us);
  histogram.add(7_000_001);
  expect(histogram.quantiles()).toEqual({ p50: 500, p99: 990, max: 7_000_001 });
});
