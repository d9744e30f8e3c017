import { expect, test } from "bun:test";
import type { ClientRules } from "../../../src/domain/models.ts";
import { explainRewrite } from "../../../src/proxy/rewrite/explain.ts";
import { rewriteRules, rulesOf } from "../../support/rewrite-rules.ts";

const unseen = "the client does not see what it adds.";
const seen = "the client's stream_options do not refuse the usage, so it gets the usage at the end.";

test.each([
  ["null", "final", "include_usage", unseen],
  ["[]", "final", "include_usage", unseen],
  ['{"include_usage":false}', "continuous", "include_usage, continuous_usage_stats", unseen],
  ["{}", "final", "include_usage", seen],
  ["{}", "continuous", "include_usage, continuous_usage_stats", seen],
  ['{"include_usage":true}', "continuous", "include_usage, continuous_usage_stats", seen],
] as const)(
  "of stream_options %s under %s, who sees the usage is explained",
  async (options, forceStreamUsage, to, why) => {
    const body = `{"stream":true,"stream_options":${options}}`;
    const { edits } = await explainRewrite(
      "/v1/chat/completions",
      body,
      rulesOf(rewriteRules({ forceStreamUsage })).names,
    );
    expect(edits).toEqual([
      { what: "stream_usage", from: undefined, to, why: `PROXY_FORCE_STREAM_USAGE is ${forceStreamUsage}; ${why}` },
    ]);
  },
);

test.each([
  ["/v1/messages", '{"messages":[{"role":"user"},{"role":"system"}]}', "system_turns_to_user", "system", "user"],
  [
    "/v1/messages",
    '{"system":"x-anthropic-billing-header: a"}',
    "drop_billing_line",
    "x-anthropic-billing-header: …",
    undefined,
  ],
  ["/v1/responses", '{"input":[{"role":"developer","content":"A"}]}', "developer_to_system", "developer", "system"],
  ["/v1/responses", '{"tools":[{"type":"web_search"}]}', "function_tools_only", undefined, "tools"],
  ["/v1/responses", '{"input":"Hi"}', "full_context_code", undefined, '"code":"context_length_exceeded"'],
] as const)(
  "on %s, what a client rule makes of %s is explained, and by whose word",
  async (path, body, what, from, to) => {
    const userAgent = path === "/v1/messages" ? "claude-cli/2.1.330" : "codex_exec/0.169.0";
    const client = { userAgent, enginesOf: () => ["llama.cpp"] as const };
    const reasonOf = async (clientRules: ClientRules): Promise<string | undefined> => {
      const { names } = rulesOf(rewriteRules({ clientRules }));
      const { edits } = await explainRewrite(path, body, names, client);
      const found = edits.filter((edit) => edit.what === what);
      expect(found).toMatchObject([{ what, from, to }]);
      return found[0]?.why;
    };
    expect(await reasonOf("auto")).toStartWith(
      "CLIENT_RULES is auto, and this client needs it in front of this engine: ",
    );
    expect(await reasonOf([what])).toStartWith("CLIENT_RULES names it: ");
  },
);
