import { expect, test } from "bun:test";
import { adviceSentences } from "../../../console/src/operator/client-advice.ts";

const advice = {
  client: "claude-cli/2.1.332",
  backend: "one",
  engines: ["vllm" as const],
  rules: ["drop_billing_line" as const, "system_turns_to_user" as const],
  request_count: 41,
  refused_count: 0,
  read_again_tokens: 3_100_000,
};

test("what a client met for want of a rule is one sentence with numbers, engine and rules", () => {
  expect(
    adviceSentences([
      advice,
      { ...advice, rules: ["drop_billing_line"], refused_count: 1, request_count: 2 },
      { ...advice, refused_count: 2, read_again_tokens: 0 },
    ]),
  ).toEqual([
    "41 requests of claude-cli/2.1.332 had 3.1M tokens read that were in no cache; for vLLM, the rules drop_billing_line and system_turns_to_user help it.",
    "2 requests of claude-cli/2.1.332 had 3.1M tokens read that were in no cache and got 1 error of the backend; for vLLM, the rule drop_billing_line helps it.",
    "41 requests of claude-cli/2.1.332 got 2 errors of the backend; for vLLM, the rules drop_billing_line and system_turns_to_user help it.",
  ]);
});
