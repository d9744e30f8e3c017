import { expect, test } from "bun:test";
import { findBackendCounters } from "../../src/telemetry/backend-counters.ts";

/** Names, labels and number formats are those of vLLM 0.10 with two engines; the values are made up. */
const vllm = `# HELP vllm:prompt_tokens_total Number of prefill tokens processed.
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{engine="0",model_name="Qwen/Qwen2.5-7B-Instruct"} 21.0
vllm:prompt_tokens_total{engine="1",model_name="Qwen/Qwen2.5-7B-Instruct"} 9.0
# HELP vllm:generation_tokens_total Number of generation tokens processed.
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{engine="0",model_name="Qwen/Qwen2.5-7B-Instruct"} 1.048576e+06
vllm:generation_tokens_total{engine="1",model_name="Qwen/Qwen2.5-7B-Instruct"} 12.0
vllm:generation_tokens_created{engine="0",model_name="Qwen/Qwen2.5-7B-Instruct"} 1.7e+09
`;
/** From the documentation of SGLang 0.4, which shows what a server returned; shortened. */
const sglang = `# HELP sglang:prompt_tokens_total Number of prefill tokens processed.
# TYPE sglang:prompt_tokens_total counter
sglang:prompt_tokens_total{model_name="meta-llama/Llama-3.1-8B-Instruct"} 8.128902e+06
# HELP sglang:generation_tokens_total Number of generation tokens processed.
# TYPE sglang:generation_tokens_total counter
sglang:generation_tokens_total{model_name="meta-llama/Llama-3.1-8B-Instruct"} 7.557572e+06
sglang:gen_throughput{model_name="meta-llama/Llama-3.1-8B-Instruct"} 86.50814177726902
`;

test("the counters of vLLM and SGLang are summed over engines and models", () => {
  expect(findBackendCounters(vllm)).toEqual({ source: "vllm", generatedTokens: 1_048_588, promptTokens: 30 });
  expect(findBackendCounters(sglang)).toEqual({
    source: "sglang",
    generatedTokens: 7_557_572,
    promptTokens: 8_128_902,
  });
});

test.each([
  ["", undefined],
  ["<html>Not found</html>", undefined],
  ["llamacpp:tokens_predicted_total 5", undefined],
  ["vllm:generation_tokens_total NaN", undefined],
  ["vllm:generation_tokens_total{} -5", undefined],
  ["vllm:generation_tokens_total_sum 5", undefined],
  ["vllm:generation_tokens_total 5", 5],
  ['sglang:generation_tokens_total{is_streaming="true"} 5\nsglang:generation_tokens_total{is_streaming="false"} 2', 7],
  ['vllm:generation_tokens_total{model_name="a } 7"} 5 1700000000000\r\n', 5],
])("%p has %p generated tokens", (text, generated) => {
  expect(findBackendCounters(text)?.generatedTokens).toBe(generated as never);
});

test("a hostile text takes no time", () => {
  const started = performance.now();
  findBackendCounters(`vllm:generation_tokens_total${"{".repeat(1_000_000)}`);
  findBackendCounters(`vllm:generation_tokens_total ${" ".repeat(1_000_000)}x`);
  expect(performance.now() - started).toBeLessThan(2000);
});
