import { describe, expect, test } from "bun:test";
import type { RewriteRules } from "../../../src/proxy/rewrite/rewrite.ts";
import { rewriteText } from "../../support/rewritten.ts";
import { rewriteRules } from "../../support/rewrite-rules.ts";

type Force = RewriteRules["forceStreamUsage"];

const paths = ["/v1/chat/completions", "/v1/completions"];

function requested(path: string, forceStreamUsage: Force, body: string): { body: string; added: string } {
  const rewritten = rewriteText(path, body, rewriteRules({ forceStreamUsage }));
  const { includeUsage, continuousUsage } = rewritten.usageAdded;
  const added = [includeUsage ? "usage" : "", continuousUsage ? "continuous" : ""].filter((word) => word !== "");
  return { body: rewritten.body ?? "unchanged", added: added.join(" and ") };
}

describe.each(paths)("on %s", (path) => {
  const both = '{"include_usage":true,"continuous_usage_stats":true}';
  const rows: [options: string | undefined, force: Force, sent: string | undefined, added: string][] = [
    [undefined, "off", undefined, ""],
    [undefined, "final", '{"include_usage":true}', "usage"],
    [undefined, "continuous", both, "usage and continuous"],
    ["null", "final", '{"include_usage":true}', "usage"],
    ["null", "continuous", both, "usage and continuous"],
    ['{"include_usage":true}', "final", undefined, ""],
    ['{"include_usage":true}', "continuous", both, "continuous"],
    ['{"include_usage":true,"continuous_usage_stats":false}', "continuous", undefined, ""],
    ['{"include_usage":true,"continuous_usage_stats":true}', "continuous", undefined, ""],
    ['{"include_usage":false}', "off", undefined, ""],
    ['{"include_usage":false}', "final", '{"include_usage":true}', "usage"],
    ['{"include_usage":null}', "final", '{"include_usage":true}', "usage"],
    ['{"include_usage":false}', "continuous", both, "usage and continuous"],
    [
      '{"include_usage":false,"continuous_usage_stats":false}',
      "continuous",
      '{"include_usage":true,"continuous_usage_stats":false}',
      "usage",
    ],
    // Without include_usage the client's continuous_usage_stats has no effect.
    ['{"include_usage":false,"continuous_usage_stats":true}', "final", both, "usage and continuous"],
    ['{"include_usage":false,"continuous_usage_stats":true}', "continuous", both, "usage and continuous"],
    ['{ "include_usage":false,"include_usage" : true}', "final", undefined, ""],
    [
      '{ "include_usage":true,"include_usage" : false}',
      "final",
      '{ "include_usage":true,"include_usage" : true}',
      "usage",
    ],
    // As lenient as backends.
    ['{"include_usage":0}', "final", '{"include_usage":true}', "usage"],
    ['{"include_usage":"OFF"}', "final", '{"include_usage":true}', "usage"],
    ['{"include_usage":"true"}', "final", undefined, ""],
    ['{"include_usage":1}', "continuous", '{"include_usage":1,"continuous_usage_stats":true}', "continuous"],
    [
      '{"include_usage":"no","continuous_usage_stats":"yes"}',
      "final",
      '{"include_usage":true,"continuous_usage_stats":"yes"}',
      "usage and continuous",
    ],
    // Left to the backend; vLLM reads {} as true.
    ["{}", "final", undefined, ""],
    ["{}", "continuous", undefined, ""],
    ['{"include_obfuscation":false}', "continuous", undefined, ""],
    ['{"include_usage":2}', "continuous", undefined, ""],
    ['{"include_usage":"maybe"}', "continuous", undefined, ""],
    ["[]", "continuous", undefined, ""],
    ['"yes"', "continuous", undefined, ""],
    ["false", "continuous", undefined, ""],
  ];
  test.each(rows)("options %s under %s", (options, force, sent, added) => {
    const bodyWith = (given: string | undefined) =>
      given === undefined ? '{"stream": true}' : `{"stream": true,"stream_options":${given}}`;
    const expected = sent === undefined ? "unchanged" : bodyWith(sent);
    expect(requested(path, force, bodyWith(options))).toEqual({ body: expected, added });
  });

  test.each(["", '"stream":false', '"stream":"no"', '"stream":0', '"stream":null', '"stream":true,"stream":false'])(
    "a body with %s is not a stream and gets no options",
    (stream) => {
      expect(requested(path, "continuous", `{${stream}}`)).toEqual({ body: "unchanged", added: "" });
      expect(rewriteText(path, `{${stream}}`, rewriteRules()).stream).toBe(false);
    },
  );

  test.each(["1", '"true"', '"Yes"'])("a body with a stream of %s gets options", (stream) => {
    expect(requested(path, "final", `{"stream":${stream}}`).body).toBe(
      `{"stream":${stream},"stream_options":{"include_usage":true}}`,
    );
  });

  test("of duplicate options the last counts", () => {
    const body = '{"stream":true,"stream_options":{"include_usage":true},"stream_options":null}';
    expect(requested(path, "final", body).body).toBe(
      '{"stream":true,"stream_options":{"include_usage":true},"stream_options":{"include_usage":true}}',
    );
  });
});

test.each(["/v1/messages", "/v1/responses", "/v1/embeddings"])("on %s a stream gets no options", (path) => {
  expect(requested(path, "continuous", '{"stream":true}')).toEqual({ body: "unchanged", added: "" });
  expect(rewriteText(path, '{"stream":true}', rewriteRules()).stream).toBe(true);
});
