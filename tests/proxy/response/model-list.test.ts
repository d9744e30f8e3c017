import { describe, expect, test } from "bun:test";
import {
  findNonThinkingModel,
  isNonThinkingModelPath,
  withNonThinkingModel,
} from "../../../src/proxy/response/model-list.ts";
import { catalogOf, rewriteRules } from "../../support/rewrite-rules.ts";

const modelsOf = (servedModel: string, reasoningModel: string) =>
  catalogOf(rewriteRules({ servedModel, reasoningModel }));
const live = modelsOf("Deep-V4", "deep-v4");
const notLive = modelsOf("Qwen", "deep-v4");
const createdSeconds = 1_790_000_000;

const textOf = (bytes: Uint8Array | undefined) => (bytes === undefined ? undefined : Buffer.from(bytes).toString());
const appended = (list: string, models = live) =>
  textOf(withNonThinkingModel(Buffer.from(list), models, createdSeconds));
const entryOf = (list: string, models = live) =>
  textOf(findNonThinkingModel(Buffer.from(list), models, createdSeconds));

const family = '{ "id" : "DEEP-V4" , "created":1.0, "root":"/models/deep", "permission":[{"id":"perm-1"}] }';
const copy = '{"id":"deep-v4-nonthinking","created":1,"root":"/models/deep","permission":[{"id":"perm-1"}]}';
const made = `{"id":"deep-v4-nonthinking","object":"model","created":${createdSeconds},"owned_by":"tollgate"}`;

describe("the synthetic model is appended", () => {
  test("as a copy of the family's entry, every byte of the list as it came", () => {
    const list = (data: string) =>
      `{ "object":"list", "data" : [ {"id":"other"}, ${family}${data} ], "x":12345678901234567890 }\n`;
    expect(appended(list(""))).toBe(list(`,${copy}`));
  });

  test.each([
    ['{"data":[]}', `{"data":[${made}]}`],
    ['{"data":[ ]}', `{"data":[${made} ]}`],
    ['{"data":[{"id":"other"}]}', `{"data":[{"id":"other"},${made}]}`],
    [
      '{"data":[7,null,{"id":8},{"name":"deep-v4"},"deep-v4"]}',
      `{"data":[7,null,{"id":8},{"name":"deep-v4"},"deep-v4",${made}]}`,
    ],
  ])("as an entry of its own where the list lacks the family's: %s", (list, expected) => {
    expect(appended(list)).toBe(expected);
  });

  test("to the list that counts, where there are two", () => {
    expect(appended(`{"data":[${family}],"data":[]}`)).toBe(`{"data":[${family}],"data":[${made}]}`);
  });
});

describe("no model is appended", () => {
  test("twice, in whatever case the list has it", () => {
    const list = `{"data":[${family},{"id":"Deep-V4-NonThinking"}]}`;
    expect(appended(list)).toBeUndefined();
    expect(appended(appended(`{"data":[${family}]}`) ?? "")).toBeUndefined();
  });

  test("while the family is not live", () => {
    expect(appended(`{"data":[${family}]}`, notLive)).toBeUndefined();
    expect(entryOf(`{"data":[${family}]}`, notLive)).toBeUndefined();
    expect(isNonThinkingModelPath("/v1/models/deep-v4-nonthinking", notLive)).toBe(false);
  });

  test.each([
    "",
    "not json",
    "[]",
    '"data"',
    "null",
    "{}",
    '{"data":{}}',
    '{"data":null}',
    '{"data":[',
    '{"models":[]}',
  ])("to what is no list: %j", (list) => {
    expect(appended(list)).toBeUndefined();
    expect(entryOf(list)).toBeUndefined();
  });
});

describe("the model's own route", () => {
  test("answers with the entry that the list would get, or has", () => {
    expect(entryOf(`{"data":[${family}]}`)).toBe(copy);
    expect(entryOf('{"data":[]}')).toBe(made);
    expect(entryOf(`{"data":[${family},{"id":"Deep-V4-NonThinking","x":1}]}`)).toBe(
      '{"id":"Deep-V4-NonThinking","x":1}',
    );
  });

  const slashed = modelsOf("org/Deep", "org/deep");

  test.each([
    ["/v1/models/deep-v4-nonthinking", live],
    ["/v1/models/DEEP-V4-NonThinking", live],
    ["/v1/models/deep%2Dv4-nonthinking", live],
    ["/v1/models/org/deep-nonthinking", slashed],
    ["/v1/models/org%2FDeep-nonthinking", slashed],
  ])("is %s", (path, models) => {
    expect(isNonThinkingModelPath(path, models)).toBe(true);
  });

  test.each([
    "/v1/models",
    "/v1/models/",
    "/v1/models/deep-v4",
    "/v1/models/deep-v4-nonthink",
    "/v1/models/other-nonthinking",
    "/v1/models/%",
    "/v2/models/deep-v4-nonthinking",
  ])("is not %s", (path) => {
    expect(isNonThinkingModelPath(path, live)).toBe(false);
  });
});
