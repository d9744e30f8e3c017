import { expect, test } from "bun:test";
import { type Simulator, startSimulator } from "./simulator.ts";
import { findBackendCounters } from "../../../src/telemetry/backend-counters.ts";
import { pollUntil } from "../poll-until.ts";

async function post(simulator: Simulator, fields: object, script = "", path = "/v1/chat/completions"): Promise<void> {
  const body = { model: "a", max_tokens: 5, messages: [{ role: "user", content: "12345678" }], ...fields };
  const headers = { "content-type": "application/json", "x-simulate": script };
  const response = await fetch(simulator.url + path, { method: "POST", headers, body: JSON.stringify(body) });
  await response.text();
}

test("usage is summed over all responses, and reported usage also by model and by user", async () => {
  using simulator = startSimulator();
  await post(simulator, { user: "ann" });
  await post(simulator, { user: "ann", stream: true, stream_options: { include_usage: true } });
  await post(simulator, { model: "b", metadata: { user_id: "bob" }, stream: true }, "", "/v1/messages");
  // Counted, but not reported to the client.
  await post(simulator, { stream: true });
  await post(simulator, {}, "no-usage");
  expect(simulator.stats()).toEqual({
    open: 0,
    finished: 5,
    aborted: 0,
    broken: 0,
    counted: { requests: 5, inputTokens: 15, outputTokens: 25 },
    reported: { requests: 3, inputTokens: 9, outputTokens: 15 },
    reportedByModel: {
      a: { requests: 2, inputTokens: 6, outputTokens: 10 },
      b: { requests: 1, inputTokens: 3, outputTokens: 5 },
    },
    reportedByUser: {
      ann: { requests: 2, inputTokens: 6, outputTokens: 10 },
      bob: { requests: 1, inputTokens: 3, outputTokens: 5 },
    },
    processedByModel: {
      a: { requests: 4, inputTokens: 12, outputTokens: 20 },
      b: { requests: 1, inputTokens: 3, outputTokens: 5 },
    },
  });
});

test("vLLM's token counters have what was processed, for responses that were cut too", async () => {
  using simulator = startSimulator({ models: ["a", "b"] });
  await post(simulator, {});
  await post(simulator, { stream: true }, "die@3").catch(() => {});
  await post(simulator, { stream: true }, "status=500");
  await pollUntil(() => simulator.stats().open === 0);
  const text = await (await fetch(`${simulator.url}/metrics`)).text();
  expect(text.split("\n").filter((line) => line.includes("generation"))).toEqual([
    "# HELP vllm:generation_tokens_total Number of generation tokens processed.",
    "# TYPE vllm:generation_tokens_total counter",
    expect.stringMatching(/^vllm:generation_tokens_total\{engine="0",model_name="a"\} [78]\.0$/),
    'vllm:generation_tokens_total{engine="0",model_name="b"} 0.0',
  ]);
  expect(findBackendCounters(text)).toMatchObject({ source: "vllm", promptTokens: 6 });
});

test("failed and broken responses add nothing to the sums", async () => {
  using simulator = startSimulator();
  await post(simulator, {}, "status=500");
  await post(simulator, { stream: true, stream_options: { include_usage: true } }, "die@3").catch(() => {});
  await pollUntil(() => simulator.stats().open === 0);
  expect(simulator.stats()).toMatchObject({ finished: 1, broken: 1, counted: { requests: 0, outputTokens: 0 } });
});

test("a hundred concurrent streams are all counted, including those that their clients leave", async () => {
  using simulator = startSimulator({ framesPerSecond: 200 });
  const leaving = new AbortController();
  const fields = { stream: true, stream_options: { include_usage: true } };
  const staying = Array.from({ length: 60 }, () => post(simulator, fields));
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify({ model: "a", messages: [], max_tokens: 1000, stream: true });
  const left = Array.from({ length: 40 }, async () => {
    const url = `${simulator.url}/v1/chat/completions`;
    const response = await fetch(url, { method: "POST", headers, body, signal: leaving.signal });
    await response.text();
  });
  const settled = Promise.allSettled(left);
  await Promise.all(staying);
  await pollUntil(() => simulator.stats().open === 40);
  leaving.abort();
  await settled;
  await pollUntil(() => simulator.stats().open === 0);
  expect(simulator.stats()).toMatchObject({
    finished: 60,
    aborted: 40,
    reported: { requests: 60, inputTokens: 180, outputTokens: 300 },
  });
});
