import { compact, plural } from "../lib/format.ts";
import type { ClientUsage } from "../queries.ts";

type Advice = ClientUsage["advice"][number];

const engineNames: Readonly<Record<Advice["engines"][number], string>> = {
  vllm: "vLLM",
  sglang: "SGLang",
  "llama.cpp": "llama.cpp",
  ollama: "Ollama",
};

/** What clients met for want of a rule, and which one: one sentence for each client and backend. */
export function adviceSentences(advice: readonly Advice[]): string[] {
  return advice.map((one) => {
    const { client, engines, rules, request_count: requests, refused_count: refused, read_again_tokens: tokens } = one;
    const read = tokens > 0 ? [`had ${compact(tokens)} tokens read that were in no cache`] : [];
    const errors = refused > 0 ? [`got ${plural(refused, "error")} of the backend`] : [];
    const names = engines.map((name) => engineNames[name]).join(" and ");
    return `${plural(requests, "request")} of ${client} ${[...read, ...errors].join(" and ")}; for ${names}, ${listed(rules)}.`;
  });
}

const listed = (rules: Advice["rules"]): string =>
  rules.length === 1 ? `the rule ${rules.join()} helps it` : `the rules ${rules.join(" and ")} help it`;
