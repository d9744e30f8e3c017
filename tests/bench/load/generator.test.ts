import { describe, expect, test } from "bun:test";
import { startSimulator } from "../../support/simulator/simulator.ts";
import { conversationMark } from "../agent-bodies.ts";
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

  test("sends several bodies in turn, and another conversation each time that all were sent", async () => {
    const recording = startSimulator();
    const bodies = ["one", "two"].map((content) =>
      body({ messages: [{ role: "user", content: `${conversationMark} ${content} ${conversationMark}` }] }),
    );
    const port = Number(new URL(recording.url).port);
    await generateLoad(specOf({ port, body: bodies, keys: ["a"], connections: 1, requests: 5 }));
    const sent = recording
      .requests()
      .map((request) => /"content":"(.*?)"/.exec(Buffer.from(request.body()).toString())?.[1]);
    recording.stop();
    expect(sent).toEqual([
      "00000000 one 00000000",
      "00000000 two 00000000",
      "00000001 one 00000001",
      "00000001 two 00000001",
      "00000002 one 00000002",
    ]);
  });

  test("keeps to its rate, and to its time limit if there is no response", async () => {
    const paced = await generateLoad(specOf({ requests: 30, perSecond: 100 }));
    expect(paced.statuses).toEqual({ 200: 30 });
    expect(paced.seconds).toBeGreaterThan(0.25);
    const silent = await generateLoad(
      specOf({ requests: 4, limitMs: 200, headers: ["x-simulate: slow-head=60s"], stallMs: 1 }),
    );
    expect(silent.statuses).toEqual({ 0: 4 });
  });
});

test("a histogram is accurate to five microseconds for quantiles and exact for the maximum", () => {
  const histogram = createHistogram();
  expect(histogram.quantiles()).toEqual({ p50: 0, p99: 0, max: 0 });
  for (let us = 1; us <= 1000; us++) histogram.add(us);
  histogram.add(7_000_001);
  expect(histogram.quantiles()).toEqual({ p50: 500, p99: 990, max: 7_000_001 });
});
