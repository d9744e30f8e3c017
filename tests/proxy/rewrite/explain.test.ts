import { expect, test } from "bun:test";
import { explainRewrite } from "../../../src/proxy/rewrite/explain.ts";
import { rewriteRules } from "../../support/rewrite-rules.ts";

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
    const { edits } = await explainRewrite("/v1/chat/completions", body, rewriteRules({ forceStreamUsage }));
    expect(edits).toEqual([
      { what: "stream_usage", from: undefined, to, why: `PROXY_FORCE_STREAM_USAGE is ${forceStreamUsage}; ${why}` },
    ]);
  },
);
