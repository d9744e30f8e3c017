import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { continueScan, isComplete } from "../../../src/proxy/json/scan.ts";
import { startScan } from "../../../src/proxy/json/scan.ts";
import { createSlot, type JsonSlot, type JsonValue } from "../../../src/proxy/json/slots.ts";
import { brokenText, isJson, jsonText, nearlyJson } from "../../support/json-text.ts";

/** Slots at several levels, so that a text meets watched places as well as others. */
function createLooked(): JsonSlot {
  const element = createSlot({ members: { a: createSlot() } });
  const inner = createSlot({ members: { a: createSlot() } });
  return createSlot({ members: { a: createSlot(), list: createSlot({ element }), inner } });
}

/** @param stepBytes how much is read at a time */
function scan(text: string, root = createLooked(), stepBytes = Infinity): boolean {
  const bytes = Buffer.from(text);
  const started = startScan(bytes, root);
  for (let limit = 0; limit < bytes.length;) {
    limit = Math.min(bytes.length, limit + stepBytes);
    continueScan(started, limit);
  }
  return isComplete(started);
}

const stepSizes = [1, 2, 3, 7, Infinity];

describe("a scan accepts what JSON.parse accepts,", () => {
  test.each(nearlyJson.filter((text) => !text.startsWith("\ufeff")))("for %j at any position, in any steps", (text) => {
    const inner = `{"inner":{"x":[${text}]}}`;
    for (const whole of [text, `{"a":${text}}`, `{"list":[${text}]}`, `{"other":${text}}`, inner]) {
      const accepted = stepSizes.map((stepBytes) => scan(whole, createLooked(), stepBytes));
      expect([whole, ...accepted]).toEqual([whole, ...stepSizes.map(() => isJson(whole))]);
    }
  });

  test("for any text, whole or broken, in any steps", () => {
    const texts = fc.oneof(jsonText, brokenText).map((text) => text.toWellFormed());
    const property = fc.property(texts, fc.constantFrom(...stepSizes), (text, stepBytes) => {
      expect(scan(text, createLooked(), stepBytes)).toBe(isJson(text));
    });
    fc.assert(property, { numRuns: 3000 });
  });

  test.each(["NaN", "Infinity", "-Infinity"])("and %s, as Python does", (literal) => {
    const a = createSlot();
    expect(scan(`{"a":${literal},"b":[${literal}]}`, createSlot({ members: { a } }))).toBe(true);
    expect(a).toMatchObject({ kind: "literal", start: 5, end: 5 + literal.length });
  });

  test("and one byte order mark before it", () => {
    const root = createSlot();
    expect(scan("\ufeff {}", root)).toBe(true);
    expect(root).toMatchObject({ kind: "object", start: 4, end: 6 });
    expect(scan("\ufeff\ufeff{}")).toBe(false);
  });
});

describe("a slot", () => {
  const textOf = (text: string, { start, end }: JsonValue) => Buffer.from(text).toString("utf8", start, end);

  test.each([
    ['"é\\"\\\\"', "string"],
    ["-1.5e+10", "number"],
    ["0", "number"],
    ["-0", "number"],
    ["true", "literal"],
    ["null", "literal"],
    ['[1, {"a":2}]', "array"],
    ['{"b":{"a":[]}}', "object"],
  ] as const)("has kind and position of %s", (value, kind) => {
    for (const stepBytes of stepSizes) {
      const a = createSlot();
      const text = `{ "é": 1, "\\u0061" : ${value} , "b":0 }`;
      expect(scan(text, createSlot({ members: { a } }), stepBytes)).toBe(true);
      expect([a.kind, textOf(text, a)]).toEqual([kind, value]);
    }
  });

  test("is absent if the text does not have its member", () => {
    const names = ["__proto__", "constructor", "toString"];
    const slots = names.map(() => createSlot());
    const root = createSlot({
      members: Object.fromEntries(names.map((name, index) => [name, slots[index] ?? createSlot()])),
    });
    scan('{"x":{"toString":1},"__proto__":true,"constructor":2}', root);
    expect(slots.map(({ kind }) => kind)).toEqual(["literal", "number", "absent"]);
  });

  test("holds the last of duplicates, and calls back for each", () => {
    const text = '{"a":1,"b":0,"\\u0061":{"x":9},"a":"x"}';
    const seen: string[] = [];
    const a = createSlot({ onValue: () => seen.push(textOf(text, a)) });
    scan(text, createSlot({ members: { a } }));
    expect(seen).toEqual(["1", '{"x":9}', '"x"']);
    expect(textOf(text, a)).toBe('"x"');
  });

  test("holds each element in turn, with the members of that element only", () => {
    const text = '{"list":[ {"a":1}, 2 ,{"b":3}, [{"a":4}], {"a":{"a":5}}],"a":6}';
    const seen: unknown[] = [];
    const a = createSlot();
    const element = createSlot({
      members: { a },
      onValue: () => seen.push([textOf(text, element), a.kind === "absent" ? undefined : textOf(text, a)]),
    });
    const list = createSlot({ element });
    expect(scan(text, createSlot({ members: { list } }))).toBe(true);
    expect(seen).toEqual([
      ['{"a":1}', "1"],
      ["2", undefined],
      ['{"b":3}', undefined],
      ['[{"a":4}]', undefined],
      ['{"a":{"a":5}}', '{"a":5}'],
    ]);
    expect(list.count).toBe(5);
  });

  test("says when the next value starts, before its elements", () => {
    const calls: string[] = [];
    const element = createSlot({ onStart: () => calls.push("element"), onValue: () => calls.push("element's value") });
    const list = createSlot({ element, onStart: () => calls.push("list"), onValue: () => calls.push("list's value") });
    scan('{"list":[1],"list":null}', createSlot({ members: { list } }));
    expect(calls).toEqual(["list", "element", "element's value", "list's value", "list", "list's value"]);
  });

  test.each([
    ['{ "a" : 1 \n}', 9],
    ["[ 1 , 2 ]", 7],
    ['{"a":[[]] }', 9],
    ["{ }", 1],
    ["[\n]", 1],
  ])("has the tail of %j after its last child, or after its bracket", (text, tail) => {
    const root = createSlot();
    scan(text, root);
    expect(root.tail).toBe(tail);
  });
});

describe("a hundred thousand levels are scanned without recursion", () => {
  const levels = 100_000;
  const nested: [string, string][] = [
    ["arrays", "[".repeat(levels) + "]".repeat(levels)],
    ["objects", `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`],
    ["both", `${'[{"a":'.repeat(levels)}1${"}]".repeat(levels)}`],
  ];
  test.each(nested)("of %s, at any position in the slots or outside them", (_, text) => {
    for (const wrapped of [text, `{"a":${text}}`, `{"list":[${text}]}`, `{"b":${text}}`]) {
      expect(scan(wrapped)).toBe(true);
      expect(scan(wrapped.slice(0, -1))).toBe(false);
      expect(scan(`${wrapped.slice(0, -1)}${wrapped.endsWith("]") ? "}" : "]"}`)).toBe(false);
    }
  });

  test("with a bit of memory for each", () => {
    const bytes = Buffer.alloc(1_000_000, "[");
    const started = startScan(bytes, createSlot());
    continueScan(started, bytes.length);
    expect(started.nesting.depth).toBe(1_000_000);
    expect(started.nesting.objects.byteLength).toBeLessThan(1_000_000 / 4);
    expect(started.watched.length).toBe(2);
  });
});
