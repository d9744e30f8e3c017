import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { createSource, notJson, valueEnd } from "../../../src/proxy/json/scan.ts";
import { brokenText, isJson, jsonText, nearlyJson } from "../../support/json-text.ts";

const endOf = (text: string, start = 0): number => valueEnd(createSource(text), start);

test.each(nearlyJson)("%j is a value if JSON.parse accepts it", (text) => {
  const array = `[${text}]`;
  expect(endOf(array) === array.length).toBe(isJson(array));
});

test("any value ends at the end of its text, whatever follows", () => {
  fc.assert(
    fc.property(jsonText, fc.constantFrom("", " ", ",", "]", "}", "x", '"'), (text, next) => {
      expect(endOf(text + next)).toBe(text.length);
    }),
    { numRuns: 1000 },
  );
});

test("a broken text is a value if and only if JSON.parse accepts it", () => {
  fc.assert(
    fc.property(brokenText, (text) => {
      const array = `[${text}]`;
      expect(endOf(array) === array.length).toBe(isJson(array));
    }),
    { numRuns: 2000 },
  );
});

describe("a string ends at its own quote", () => {
  const long = "x".repeat(100);
  test.each([
    '""',
    '"a"',
    '"\\""',
    '"\\\\"',
    `"${long}"`,
    `"${long}\\""`,
    `"${long}\\\\"`,
    `"\\"${long}\\""`,
    `"${'\\"'.repeat(50)}"`,
  ])("in %s", (text) => {
    expect(endOf(`${text}"`)).toBe(text.length);
    expect(endOf(`[${text}, ${text}]"`, 1)).toBe(text.length + 1);
  });

  test("if several are scanned from one source, near and far from escapes and line breaks", () => {
    const strings = ['"a"', '"\\n"', `"${long}"`, `"${long}\\t"`, '"\\u00e9"', `"${long}"`];
    const text = strings.map((string) => `\n\t${string}`).join(",");
    expect(endOf(`[${text}\n]`)).toBe(text.length + 3);
    expect(endOf(`[${text},"${long}\n"]`)).toBe(notJson);
  });
});

test("a truncated text is not a value", () => {
  const text = `{"a":[1,{"b":"${"x".repeat(50)}\\u00e9"},true,-1.5e+10],"c":{}}`;
  const ends = Array.from({ length: text.length }, (_, length) => endOf(text.slice(0, length)));
  expect(new Set(ends)).toEqual(new Set([notJson]));
  expect(endOf(text)).toBe(text.length);
});
