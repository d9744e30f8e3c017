import { expect, test } from "bun:test";
import { adviceSentences, silentStreamsProblem } from "../../../console/src/operator/client-advice.ts";

const advice = {
  client: "claude-cli/2.1.332",
  backend: "one",
  engines: ["vllm" as const],
  rules: ["drop_billing_line" as const, "system_turns_to_user" as const],
  request_count: 120,
  refused_count: 0,
  read_anew_count: 41,
  read_anew_tokens: 3_100_000,
};

test("what a client met for want of a rule is one sentence with numbers, engine and rules", () => {
  expect(
    adviceSentences([
      advice,
      { ...advice, rules: ["drop_billing_line"], refused_count: 1, request_count: 42 },
      { ...advice, refused_count: 2, read_anew_count: 0 },
      { ...advice, request_count: 1, read_anew_count: 1, read_anew_tokens: null },
    ]),
  ).toEqual([
    "Of 120 requests of claude-cli/2.1.332, 41 had 3.1M tokens read anew. For vLLM, the rules drop_billing_line and system_turns_to_user help it.",
    "Of 42 requests of claude-cli/2.1.332, 41 had 3.1M tokens read anew and the backend refused 1. For vLLM, the rule drop_billing_line helps it.",
    "Of 120 requests of claude-cli/2.1.332, the backend refused 2. For vLLM, the rules drop_billing_line and system_turns_to_user help it.",
    "Of 1 request of claude-cli/2.1.332, 1 may have been read anew (the backend does not report its cache). For vLLM, the rules drop_billing_line and system_turns_to_user help it.",
  ]);
});

test.each<[programs: (string | null)[], begins: string | undefined]>([
  [["OpenAI", "curl", null], undefined],
  [["OpenAI", "codex_exec"], "Codex sent requests in the last 24 hours"],
  [["opencode", "claude-cli", "Codex"], "Claude Code and Codex and opencode sent requests"],
])("without heartbeats, of the programs %j agents are told", (programs, begins) => {
  const problem = silentStreamsProblem(programs.map((name) => ({ name })));
  if (begins === undefined) return expect(problem).toBeUndefined();
  expect(problem).toStartWith(begins);
  expect(problem).toContain("PROXY_SSE_KEEPALIVE=15");
});
