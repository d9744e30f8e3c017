import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { decodeHead, decodeString, decodeTail, findJson, findString } from "../../../src/proxy/json/bytes.ts";
import { readJson } from "../../../src/proxy/json/read.ts";
import { createSlot, type JsonValue } from "../../../src/proxy/json/slots.ts";
import { stringText } from "../../support/json-text.ts";

function valueIn(json: string): [bytes: Buffer, value: JsonValue] {
  const bytes = Buffer.from(`[${json}]`);
  const element = createSlot();
  expect(readJson(bytes, createSlot({ element }))).toBe(true);
  return [bytes, element];
}

const contentIn = (json: string) => {
  const [bytes, { start, end }] = valueIn(json);
  return [bytes, { start: start + 1, end: end - 1 }] as const;
};

describe("a string", () => {
  test("is unescaped", () => {
    expect(findString(...valueIn('"\\ud83d\\ude00\\n\\"é"'))).toBe('😀\n"é');
    expect(findString(...valueIn("1"))).toBeUndefined();
  });

  test("of more than 64 KiB is not decoded", () => {
    expect(findString(...valueIn(`"${"x".repeat(60_000)}"`))).toHaveLength(60_000);
    expect(findString(...valueIn(`"${"x".repeat(70_000)}"`))).toBeUndefined();
    expect(findJson(...valueIn(`"${"x".repeat(60_000)}"`))).toHaveLength(60_002);
    expect(findJson(...valueIn(`"${"x".repeat(70_000)}"`))).toBeUndefined();
  });
});

describe("the head and tail of a string", () => {
  const strings = stringText(fc.string({ unit: "binary", maxLength: 300 }).map((text) => text.toWellFormed()));

  test("are those of the whole string, if it has enough characters", () => {
    const property = fc.property(strings, fc.integer({ min: 1, max: 20 }), (json, length) => {
      const [bytes, content] = contentIn(json);
      const whole = decodeString(bytes, content);
      expect(whole).toBe(JSON.parse(json));
      expect(decodeHead(bytes, content, length).slice(0, length)).toBe(whole.slice(0, length));
      expect(decodeTail(bytes, content, length).slice(-length)).toBe(whole.slice(-length));
    });
    fc.assert(property, { numRuns: 2000 });
  });

  test("are found in a string of escapes only", () => {
    const [bytes, content] = contentIn(`"${"\\\\".repeat(100_000)}"`);
    expect(decodeHead(bytes, content, 10).slice(0, 10)).toBe("\\".repeat(10));
    expect(decodeTail(bytes, content, 10).slice(-10)).toBe("\\".repeat(10));
  });

  test("take no more time for a long string", () => {
    const [bytes, content] = contentIn(`"${"\\u0041é".repeat(1_000_000)}"`);
    expect(decodeHead(bytes, content, 10).length).toBeLessThan(100);
    expect(decodeTail(bytes, content, 10).length).toBeLessThan(200);
  });
});
