import type { SimulatedResponse } from "../simulated-response.ts";
import type { Usage } from "../../../../src/domain/usage.ts";

/** GET /metrics: vLLM's token counters, in the Prometheus text format as Python's client writes it. */
export function metricsResponse(processed: readonly (readonly [model: string, Usage])[]): SimulatedResponse {
  const counter = (name: string, help: string, valueOf: (usage: Usage) => number): string =>
    [
      `# HELP vllm:${name} ${help}`,
      `# TYPE vllm:${name} counter`,
      ...processed.map(
        ([model, usage]) => `vllm:${name}{engine="0",model_name="${model}"} ${valueOf(usage).toFixed(1)}`,
      ),
      "",
    ].join("\n");
  const body =
    counter("prompt_tokens_total", "Number of prefill tokens processed.", ({ inputTokens }) => inputTokens) +
    counter("generation_tokens_total", "Number of generation tokens processed.", ({ outputTokens }) => outputTokens);
  const headers = [["content-type", "text/plain; version=0.0.4; charset=utf-8"]] as const;
  return { status: 200, headers, body, usage: undefined, usageReported: false };
}
