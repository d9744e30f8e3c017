import { describe, expect, test } from "bun:test";
import { hasMember } from "../../../src/proxy/json/bytes.ts";

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
