import { describe, expect, test } from "bun:test";
import { rewriteText } from "../../support/rewritten.ts";
import { familyRules, rewriteRules } from "../../support/rewrite-rules.ts";

const paths = ["/v1/chat/completions", "/v1/messages", "/v1/responses"];
const live = rewriteRules(familyRules);

const none = '{"thinking":false}';
const high = '{"thinking":true,"reasoning_effort":"high"}';
const max = '{"thinking":true,"reasoning_effort":"max"}';

describe.each(paths)("on %s with the family live", (path) => {
  const rewritten = (body: string) => rewriteText(path, body, live).body;

  const modes: [model: string, config: string, kwargs: string][] = [
    ["deep-v4-nonthinking", "", none],
    ["DEEP-V4-NONTHINKING", "", none],
    ["deep-v4-nonthinking", ',"output_config":{"effort":"max"}', none],
    ["other-nonthinking", ',"output_config":{"effort":"low"}', none],
    ["other-NonThink", ',"output_config":{"effort":"xhigh"}', none],
    ["deep-v4-nonthinking[1m]", "", none],
    ["Deep-V4", ',"output_config":{"effort":"max"}', max],
    ["Deep-V4", ',"output_config":{"effort":"xhigh"}', max],
    ["claude-large", ',"output_config":{"format":{},"effort":"max"}', max],
    ["unknown", ',"output_config":{"effort":"\\u006dax"}', max],
    ["Deep-V4", ',"output_config":{"effort":"low","effort":"max"}', max],
    ["Deep-V4", ',"output_config":{"effort":"low"}', high],
    ["Deep-V4", ',"output_config":{"effort":"medium"}', high],
    ["Deep-V4", ',"output_config":{"effort":"high"}', high],
    ["Deep-V4", "", high],
    ["unknown", "", high],
    ["Deep-V4", ',"output_config":{}', high],
    ["Deep-V4", ',"output_config":{"effort":"extreme"}', high],
    ["Deep-V4", ',"output_config":{"effort":"MAX"}', high],
    ["Deep-V4", ',"output_config":{"effort":null}', high],
    ["Deep-V4", ',"output_config":{"effort":["max"]}', high],
    ["Deep-V4", ',"output_config":{"effort":"max","effort":"low"}', high],
    ["Deep-V4", ',"output_config":"max"', high],
    ["Deep-V4", ',"output_config":null', high],
  ];
  test.each(modes)("model %s%s gets its mode", (model, config, kwargs) => {
    const name = model === "unknown" ? model : "Deep-V4";
    expect(rewritten(`{"model":"${model}"${config}}`)).toBe(
      `{"model":"${name}"${config},"chat_template_kwargs":${kwargs}}`,
    );
  });

  const given: [model: string, kwargs: string, filled: string][] = [
    ["Deep-V4", "{}", high],
    ["Deep-V4", "{ }", '{"thinking":true,"reasoning_effort":"high" }'],
    ["Deep-V4", '{"thinking":false}', '{"thinking":false,"reasoning_effort":"high"}'],
    ["Deep-V4", '{"reasoning_effort":null}', '{"reasoning_effort":null,"thinking":true}'],
    [
      "Deep-V4",
      '{"th\\u0069nking":1, "x":{"thinking":0}}',
      '{"th\\u0069nking":1, "x":{"thinking":0},"reasoning_effort":"high"}',
    ],
    ["Deep-V4", '{"enable_thinking":false}', '{"enable_thinking":false,"thinking":false,"reasoning_effort":"high"}'],
    [
      "Deep-V4",
      '{"enable_thinking" : [1, 2]}',
      '{"enable_thinking" : [1, 2],"thinking":[1, 2],"reasoning_effort":"high"}',
    ],
    [
      "Deep-V4",
      '{"enable_thinking":false,"thinking":true}',
      '{"enable_thinking":false,"thinking":true,"reasoning_effort":"high"}',
    ],
    ["any-nonthink", "{}", none],
    ["any-nonthink", '{"thinking":true}', '{"thinking":true}'],
    ["any-nonthink", '{"enable_thinking":true}', '{"enable_thinking":true,"thinking":true}'],
    ["any-nonthink", '{"reasoning_effort":"max"}', '{"reasoning_effort":"max","thinking":false}'],
  ];
  test.each(given)("a client's own keys stay: %s with %s", (model, kwargs, filled) => {
    expect(rewritten(`{"model":"${model}","chat_template_kwargs":${kwargs}}`)).toBe(
      `{"model":"Deep-V4","chat_template_kwargs":${filled}}`,
    );
  });

  test.each(["null", "1", '"x"', "[]", "true"])(
    "a client's chat_template_kwargs of %s is left to the backend",
    (kwargs) => {
      expect(rewritten(`{"model":"Deep-V4","chat_template_kwargs":${kwargs}}`)).toBeUndefined();
    },
  );

  test("of duplicate chat_template_kwargs the last is completed", () => {
    expect(rewritten('{"chat_template_kwargs":{"thinking":false},"chat_template_kwargs":{"x":1}}')).toBe(
      `{"chat_template_kwargs":{"thinking":false},"chat_template_kwargs":{"x":1,"thinking":true,"reasoning_effort":"high"}}`,
    );
  });

  test.each(["{}", '{"model":7}', '{"model":null}'])("the body %s without a model name gets the mode high", (body) => {
    expect(JSON.parse(rewritten(body) ?? "")).toEqual({ ...JSON.parse(body), chat_template_kwargs: JSON.parse(high) });
  });

  test("of duplicate models the last decides", () => {
    expect(rewritten('{"model":"a-nonthink","model":"Deep-V4"}')).toContain(high);
    expect(rewritten('{"model":"Deep-V4","model":"a-nonthink"}')).toBe(
      `{"model":"Deep-V4","model":"Deep-V4","chat_template_kwargs":${none}}`,
    );
  });

  test("thinking of a messages body does not change and overrides nothing", () => {
    const thinking = '"thinking": {"type":"enabled", "budget_tokens":1024}';
    expect(rewritten(`{${thinking}}`)).toBe(`{${thinking},"chat_template_kwargs":${high}}`);
  });
});

describe("the reasoning mode is not set", () => {
  const bodies = [
    '{"model":"deep-v4-nonthinking"}',
    '{"model":"x","output_config":{"effort":"max"}}',
    '{"chat_template_kwargs":{"enable_thinking":false}}',
  ];

  test.each(paths)("on %s if another model than the family's is live, or none", (path) => {
    for (const servedModel of ["Qwen", undefined]) {
      for (const body of bodies) {
        expect(rewriteText(path, body, rewriteRules({ ...familyRules, servedModel })).body).toBeUndefined();
      }
    }
  });

  test.each(["/v1/completions", "/v1/embeddings", "/v1/messages/count_tokens"])("on %s except for the name", (path) => {
    expect(rewriteText(path, '{"model":"a-nonthink"}', live).body).toBe('{"model":"Deep-V4"}');
    expect(rewriteText(path, '{"output_config":{"effort":"max"}}', live).body).toBeUndefined();
  });
});
