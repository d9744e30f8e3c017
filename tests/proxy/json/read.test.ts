import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import {
  findMember,
  findString,
  isLiteral,
  type JsonArrayNode,
  type JsonNode,
  type JsonObjectNode,
  listMembers,
  objectShape,
  readJson,
  type Shape,
} from "../../../src/proxy/json/read.ts";
import { brokenText, isJson, jsonText, nearlyJson } from "../../support/json-text.ts";

const value: Shape = {};
const looked = objectShape({
  a: value,
  list: { elements: objectShape({ a: value }) },
  inner: objectShape({ a: value }),
});

function objectIn(text: string): JsonObjectNode {
  const node = readJson(text, looked);
  if (node?.kind !== "object") throw new Error(`no object: ${text}`);
  return node;
}

const spanOf = (text: string, node: JsonNode | undefined): string | undefined =>
  node === undefined ? undefined : text.slice(node.start, node.end);

describe("readJson accepts what JSON.parse accepts,", () => {
  test.each(nearlyJson)("for %j at any position in the shape", (text) => {
    for (const whole of [
      text,
      `{"a":${text}}`,
      `{"list":[${text}]}`,
      `{"other":${text}}`,
      `{"inner":{"x":[${text}]}}`,
    ]) {
      expect([whole, readJson(whole, looked) !== undefined]).toEqual([whole, isJson(whole)]);
    }
  });

  test("for any text, whole or broken", () => {
    fc.assert(
      fc.property(fc.oneof(jsonText, brokenText), (text) => {
        expect(readJson(text, looked) !== undefined).toBe(isJson(text));
      }),
      { numRuns: 2000 },
    );
  });
});

test.each(["NaN", "Infinity", "-Infinity"])("readJson accepts %s, as Python does", (literal) => {
  expect(
    spanOf(`{"a":${literal},"b":[${literal}]}`, findMember(objectIn(`{"a":${literal},"b":[${literal}]}`), "a")),
  ).toBe(literal);
});

test("readJson skips a byte order mark", () => {
  expect(readJson("\ufeff {}", {})).toMatchObject({ kind: "object", start: 2, end: 4 });
});

test("a member is found by its unescaped name, and its span is its text", () => {
  const text = '{ "\\u0061" : [1, {"a":2}] , "b":"\\u0061" }';
  expect(spanOf(text, findMember(objectIn(text), "a"))).toBe('[1, {"a":2}]');
  expect(objectIn(text).members.map(({ name }) => name)).toEqual(["a"]);
});

test("a duplicate member has both values in order, and the last one counts", () => {
  const text = '{"a":1,"b":0,"\\u0061":{"a":9},"a":"x"}';
  const root = objectIn(text);
  expect(listMembers(root, "a").map((node) => spanOf(text, node))).toEqual(["1", '{"a":9}', '"x"']);
  expect(findString(text, findMember(root, "a"))).toBe("x");
});

test("properties of every JavaScript object are found only if the text has them", () => {
  const shape = objectShape({ ["__proto__"]: value, constructor: value, toString: value });
  const text = '{"__proto__":{"a":1},"constructor":2}';
  const root = readJson(text, shape) as JsonObjectNode;
  expect(root.members.map(({ name }) => name)).toEqual(["__proto__", "constructor"]);
  expect(findMember(root, "toString")).toBeUndefined();
});

test("elements of any kind are kept if the shape names them", () => {
  const text = '{"list":[ {"a":1}, 2 ,"x",[3], null],"inner":[1]}';
  const root = objectIn(text);
  const list = findMember(root, "list") as JsonArrayNode;
  expect(list.elements.map((node) => [node.kind, spanOf(text, node)])).toEqual([
    ["object", '{"a":1}'],
    ["number", "2"],
    ["string", '"x"'],
    ["array", "[3]"],
    ["literal", "null"],
  ]);
  expect(findMember(root, "inner")).toMatchObject({ kind: "array", elements: [] });
});

test("the tail of a container is after its last child, or after its bracket if it has none", () => {
  const tailOf = (text: string) => (readJson(text, {}) as JsonObjectNode).tail;
  expect(['{ "a" : 1 \n}', "[ 1 , 2 ]", "{ }", "[\n]"].map(tailOf)).toEqual([9, 7, 1, 1]);
});

test("a string's content is unescaped; other values have none", () => {
  const text = '{"a":"\\ud83d\\ude00\\n\\"é"}';
  expect(findString(text, findMember(objectIn(text), "a"))).toBe('😀\n"é');
  expect(findString('{"a":1}', findMember(objectIn('{"a":1}'), "a"))).toBeUndefined();
  expect(findString("{}", undefined)).toBeUndefined();
});

test("a literal is not a string of the same letters", () => {
  const isTrue = (text: string) => isLiteral(text, findMember(objectIn(text), "a"), "true");
  expect(['{"a":true}', '{"a":"true"}', '{"a":1}', "{}", '{"a":false}'].map(isTrue)).toEqual([
    true,
    false,
    false,
    false,
    false,
  ]);
});

describe("a hundred thousand levels are read without recursion", () => {
  const levels = 100_000;
  const nested: [string, string][] = [
    ["arrays", "[".repeat(levels) + "]".repeat(levels)],
    ["objects", `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`],
    ["both", `${'[{"a":'.repeat(levels)}1${"}]".repeat(levels)}`],
  ];
  test.each(nested)("of %s, at any position in the shape or outside it", (_, text) => {
    for (const wrapped of [text, `{"a":${text}}`, `{"list":[${text}]}`, `{"b":${text}}`]) {
      expect(readJson(wrapped, looked)?.end).toBe(wrapped.length);
      expect(readJson(wrapped.slice(0, -1), looked)).toBeUndefined();
    }
  });
});
