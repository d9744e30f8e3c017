import { describe, expect, test } from "bun:test";
import { rewriteText, textOf } from "../../support/rewritten.ts";
import { createRewriter } from "../../../src/proxy/rewrite/rewrite.ts";
import { rewriteRules, type RewriteSettings, rewriterOf, rulesOf } from "../../support/rewrite-rules.ts";

type Force = RewriteSettings["forceStreamUsage"];

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
    // Backends differ in which of several they read.
    ['{ "include_usage":false,"include_usage" : true}', "final", '{ "include_usage":true,"include_usage" : true}', ""],
    ['{"include_usage":true,"include_usage":true}', "final", undefined, ""],
    ['{"include_usage":[1],"include_usage":"x"}', "final", '{"include_usage":true,"include_usage":true}', "usage"],
    [
      '{ "include_usage":true,"include_usage" : false}',
      "final",
      '{ "include_usage":true,"include_usage" : true}',
      "usage",
    ],
    // As lenient as backends, of which llama.cpp takes nothing but `true` for true.
    ['{"include_usage":0}', "final", '{"include_usage":true}', "usage"],
    ['{"include_usage":"OFF"}', "final", '{"include_usage":true}', "usage"],
    ['{"include_usage":"false"}', "continuous", both, "usage and continuous"],
    ['{"include_usage":"true"}', "final", '{"include_usage":true}', ""],
    ['{"include_usage":1}', "final", '{"include_usage":true}', ""],
    ['{"include_usage":1}', "continuous", both, "continuous"],
    [
      '{"include_usage":"no","continuous_usage_stats":"yes"}',
      "final",
      '{"include_usage":true,"continuous_usage_stats":"yes"}',
      "usage and continuous",
    ],
    // What is neither true nor false.
    ['{"include_usage":2}', "final", '{"include_usage":true}', "usage"],
    ['{"include_usage":2}', "continuous", both, "usage and continuous"],
    ['{"include_usage":"maybe"}', "final", '{"include_usage":true}', "usage"],
    ['{"include_usage":[]}', "final", '{"include_usage":true}', "usage"],
    ['{"include_usage":{"include_usage":true}}', "final", '{"include_usage":true}', "usage"],
    ['{"include_usage":NaN}', "final", '{"include_usage":true}', "usage"],
    // An object without the member: vLLM takes a missing one for true, so its client reads the usage.
    ["{}", "off", undefined, ""],
    ["{}", "final", '{"include_usage":true}', ""],
    ["{ }", "final", '{"include_usage":true }', ""],
    ["{}", "continuous", both, "continuous"],
    ['{"x":1}', "final", '{"x":1,"include_usage":true}', ""],
    ['{"include_obfuscation":false}', "final", '{"include_obfuscation":false,"include_usage":true}', ""],
    ['{"Include_Usage":false}', "final", '{"Include_Usage":false,"include_usage":true}', ""],
    ['{"x":{"include_usage":false}}', "final", '{"x":{"include_usage":false},"include_usage":true}', ""],
    ['{"continuous_usage_stats":true}', "final", '{"continuous_usage_stats":true,"include_usage":true}', ""],
    ['{"continuous_usage_stats":true}', "continuous", '{"continuous_usage_stats":true,"include_usage":true}', ""],
    ['{"continuous_usage_stats":false}', "continuous", '{"continuous_usage_stats":false,"include_usage":true}', ""],
    // What is not an object.
    ...["[]", '[{"include_usage":true}]', "1", "0", '"yes"', '""', "true", "false", "NaN"].flatMap(
      (options): [string, Force, string | undefined, string][] => [
        [options, "off", undefined, ""],
        [options, "final", '{"include_usage":true}', "usage"],
        [options, "continuous", both, "usage and continuous"],
      ],
    ),
  ];
  test.each(rows)("options %s under %s", (options, force, sent, added) => {
    const bodyWith = (given: string | undefined) =>
      given === undefined ? '{"stream": true}' : `{"stream": true,"stream_options":${given}}`;
    const expected = sent === undefined ? "unchanged" : bodyWith(sent);
    expect(requested(path, force, bodyWith(options))).toEqual({ body: expected, added });
  });

  const hiding = '{"include_usage":true}';
  test.each([
    ['{"include_usage":true}', "null", hiding, hiding, "usage"],
    ["null", '{"include_usage":true}', hiding, '{"include_usage":true}', ""],
    ['{"include_usage":false,"a":1}', "{}", hiding, hiding, ""],
    ["{}", '{"include_usage":false}', hiding, hiding, "usage"],
    ["[]", '"x"', hiding, hiding, "usage"],
    ['{"include_usage":true,"include_usage":false}', '{"x":1}', hiding, '{"x":1,"include_usage":true}', ""],
  ])(
    "of the options %s and %s the last one counts, and all request the usage",
    (first, last, sentFirst, sentLast, added) => {
      const body = (one: string, other: string): string =>
        `{"stream":true,"stream_options":${one},"stream_options":${other}}`;
      expect(requested(path, "final", body(first, last))).toEqual({ body: body(sentFirst, sentLast), added });
    },
  );

  test("duplicate options request continuous usage together", () => {
    const body = (one: string): string => `{"stream":true,"stream_options":${one},"stream_options":${one}}`;
    expect(requested(path, "continuous", body("{}"))).toEqual({ body: body(both), added: "continuous" });
  });

  test.each([
    ["options", (all: string) => all],
    ["usage", (all: string) => `"stream_options":{${all.replaceAll("stream_options", "include_usage")}}`],
  ])("a body with 65 duplicates of its %s is refused", (_, wrap) => {
    const body = (count: number): string =>
      `{"stream":true,${wrap(Array(count).fill('"stream_options":false').join())}}`;
    expect(requested(path, "final", body(64)).added).toBe("usage");
    expect(() => requested(path, "final", body(65))).toThrow("too_many_duplicates");
    expect(requested(path, "off", body(65))).toEqual({ body: "unchanged", added: "" });
  });

  test("a body without options is read anew after one with many", () => {
    const rewrite = rewriterOf(rewriteRules({ forceStreamUsage: "final" }));
    const sent = (body: string): string | undefined => textOf(rewrite(path, Buffer.from(body))).body;
    sent('{"stream":true,"stream_options":{"include_usage":1,"include_usage":2},"stream_options":[]}');
    expect(sent('{"stream":true}')).toBe(`{"stream":true,"stream_options":${hiding}}`);
    expect(sent('{"stream":true,"stream_options":{"include_usage":0}}')).toBe(
      `{"stream":true,"stream_options":${hiding}}`,
    );
  });
});

test.each(["/v1/messages", "/v1/responses", "/v1/embeddings"])("on %s a stream gets no options", (path) => {
  expect(requested(path, "continuous", '{"stream":true}')).toEqual({ body: "unchanged", added: "" });
  expect(rewriteText(path, '{"stream":true}', rewriteRules()).stream).toBe(true);
});

describe("the running counts of llama.cpp", () => {
  const asked = '"stream_options":{"include_usage":true,"continuous_usage_stats":true}';
  test.each([
    ["are asked for", "", `,"timings_per_token":true,${asked}`, 1],
    ["are asked for of each choice", ',"n":3', `,"n":3,"timings_per_token":true,${asked}`, 3],
    ["are asked for where they are refused", ',"timings_per_token":false', `,"timings_per_token":true,${asked}`, 1],
    ["stay a client's own", ',"timings_per_token":true', `,"timings_per_token":true,${asked}`, undefined],
  ])("%s", (_, sent, got, timedChoices) => {
    for (const hasKeyRules of [false, true]) {
      const rewrite = (forceStreamUsage: Force, isTimed: boolean) => {
        const rules = rulesOf(rewriteRules({ forceStreamUsage, hasKeyRules }));
        const timed = new Set(isTimed ? rules.names.catalog.backends.map(({ name }) => name) : []);
        const body = Buffer.from(`{"stream":true${sent}}`);
        return textOf(createRewriter({ ...rules, timed })("/v1/chat/completions", body));
      };
      const { body, usageAdded } = rewrite("continuous", true);
      expect(JSON.parse(body ?? "")).toEqual(JSON.parse(`{"stream":true${got}}`));
      expect(usageAdded.timedChoices).toBe(timedChoices);
      expect(rewrite("continuous", false).usageAdded.timedChoices).toBeUndefined();
      expect(rewrite("final", true).usageAdded.timedChoices).toBeUndefined();
    }
  });
});
