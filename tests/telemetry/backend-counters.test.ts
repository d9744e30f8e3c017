import { expect, test } from "bun:test";
import { findBackendCounters } from "../../src/telemetry/backend-counters.ts";
import { recordedMetrics } from "../fixtures/recorded-metrics.ts";
import { threadMs } from "../support/processor-time.ts";

test("a process of vLLM is known by when it created its counters; one of SGLang or llama.cpp does not report that", () => {
  const startsOf = recordedMetrics.map(({ started, first, second }) =>
    [started, first, second].map((text) => findBackendCounters(text)?.startedAt),
  );
  const [vllm, twoEngines] = [1_795_339_927.8794544, 1_795_339_765.2187428];
  expect(startsOf).toEqual([
    [vllm, vllm, vllm],
    [twoEngines, twoEngines, twoEngines],
    [undefined, undefined, undefined],
    [undefined, undefined, undefined],
  ]);
});

test.each([
  ["vllm:generation_tokens_total 5", undefined],
  ["vllm:generation_tokens_total 5\nprocess_start_time_seconds 1.79e+09", 1_790_000_000],
  ["vllm:generation_tokens_total 5\nprocess_start_time_seconds NaN", undefined],
  [
    'vllm:generation_tokens_total 5\nprocess_start_time_seconds 1\nvllm:generation_tokens_created{engine="1"} 3\nvllm:generation_tokens_created{engine="0"} 2.5',
    2.5,
  ],
])("%p was started at %p", (text, startedAt) => {
  expect(findBackendCounters(text)?.startedAt).toBe(startedAt as never);
});

test("SGLang 0.4 has no label but the model's", () => {
  const labels = '{model_name="meta-llama/Llama-3.1-8B-Instruct"}';
  const text = `sglang:prompt_tokens_total${labels} 8.128902e+06\nsglang:generation_tokens_total${labels} 7.557572e+06\n`;
  expect(findBackendCounters(text)).toEqual({
    source: "sglang",
    generatedTokens: 7_557_572,
    promptTokens: 8_128_902,
  });
});

test("llama.cpp counts apart what it took from its cache, and reports it to clients as input", () => {
  const text = `llamacpp:prompt_tokens_total 32\nllamacpp:prompt_tokens_cached_total 58\nllamacpp:tokens_predicted_total 15\n`;
  expect(findBackendCounters(text)).toEqual({ source: "llamacpp", generatedTokens: 15, promptTokens: 90 });
});

test.each([
  ["", undefined],
  ["<html>Not found</html>", undefined],
  ["llamacpp:tokens_predicted_total 5", 5],
  ["llamacpp:tokens_predicted_seconds_total 5", undefined],
  ["vllm:generation_tokens_total NaN", undefined],
  ["vllm:generation_tokens_total{} -5", undefined],
  ["vllm:generation_tokens_total_sum 5", undefined],
  ["vllm:num_requests_running 0", undefined],
  ["sglang:num_running_reqs_offline_batch 0", undefined],
  ["vllm:generation_tokens_total 5", 5],
  ['sglang:generation_tokens_total{is_streaming="true"} 5\nsglang:generation_tokens_total{is_streaming="false"} 2', 7],
  ['vllm:generation_tokens_total{model_name="a } 7"} 5 1700000000000\r\n', 5],
])("%p has %p generated tokens", (text, generated) => {
  expect(findBackendCounters(text)?.generatedTokens).toBe(generated as never);
});

test("a hostile text takes no time", () => {
  const find = (text: string) => threadMs(() => findBackendCounters(`vllm:generation_tokens_total${text}`));
  expect(find("{".repeat(1_000_000))).toBeLessThan(1000);
  expect(find(`${" ".repeat(1_000_000)}x`)).toBeLessThan(1000);
});
