import { describe, expect, test } from "bun:test";
import { hasMember, latin1, skipLeading } from "../../../src/proxy/json/bytes.ts";

const openBrace = 0x7b;
const usage = Buffer.from('usage"');

describe("hasMember", () => {
  test.each([
    ['{"usage":{}}', true, true],
    ['{"a":{"usage" : \r\n\t{}}}', true, true],
    ['{"usage":null}', true, false],
    ['{"usage":null,"usage":{}}', true, true],
    ['{"usage"', true, false],
    ['{"a":"usage"}', true, false],
    ['{"a":"\\"usage\\":{"}', false, false],
    ['{"a":"usage: {"}', false, false],
    ["", false, false],
  ])("in %j: %p, as an object: %p", (json, isThere, isObject) => {
    expect(hasMember(Buffer.from(json), usage)).toBe(isThere);
    expect(hasMember(Buffer.from(json), usage, openBrace)).toBe(isObject);
  });
});

describe("bytes", () => {
  test("skipLeading skips white space and byte order marks", () => {
    expect(skipLeading(Buffer.from("\uFEFF \r\n\t{ }"), 0)).toBe(7);
    expect(skipLeading(Buffer.from("{  "), 1)).toBe(3);
    expect(skipLeading(Buffer.from(""), 0)).toBe(0);
  });

  test("latin1 makes one character of each byte", () => {
    expect(latin1(Buffer.from("aé"))).toBe("a\u00c3\u00a9");
    expect(latin1(Buffer.from("abcd"), 1, 3)).toBe("bc");
  });
});
