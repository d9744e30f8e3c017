import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { readJson, readJsonInSteps } from "../../../src/proxy/json/read.ts";
import { createSlot } from "../../../src/proxy/json/slots.ts";
import { runAtOnce } from "../../../src/proxy/json/steps.ts";

const isValid = (bytes: Uint8Array): boolean => runAtOnce(readJsonInSteps(bytes, createSlot()));

function isUtf8(bytes: Uint8Array): boolean {
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
}

describe("a long text is accepted if it is valid UTF-8,", () => {
  test.each(["a", "é", "漢", "😀", "a😀é漢"])("of %s, wherever its steps end", (unit) => {
    for (let shift = 0; shift < 8; shift += 1) {
      const text = Buffer.from(`["${"x".repeat(shift)}${unit.repeat(100_000)}"]`);
      expect(isValid(text)).toBe(true);
      expect(isValid(text.subarray(0, -2))).toBe(false);
    }
  });

  test("as a decoder says, with any bytes around the end of a step", () => {
    const bytes = fc.oneof(
      fc.uint8Array({ minLength: 1, maxLength: 6 }),
      fc.array(fc.constantFrom(0x80, 0xbf, 0xc2, 0xe0, 0xa0, 0xed, 0xf0, 0x90, 0xf4, 0x61), { maxLength: 8 }),
    );
    const property = fc.property(bytes, fc.nat(9), (around, shift) => {
      const content = Buffer.from(Uint8Array.from(around).filter((byte) => byte >= 0x23 && byte !== 0x5c));
      const text = Buffer.concat([Buffer.from(`"${"x".repeat(16_384 - shift)}`), content, Buffer.from('yyyyyyy"')]);
      expect(isValid(text)).toBe(isUtf8(text));
    });
    fc.assert(property, { numRuns: 1000 });
  });
});

test("a text of invalid UTF-8 is read at once all the same", () => {
  const slot = createSlot();
  expect(readJson(Buffer.from('{"a":"\xff"}', "latin1"), createSlot({ members: { a: slot } }))).toBe(true);
  expect([slot.kind, slot.start, slot.end]).toEqual(["string", 5, 8]);
});

test("a text takes one step for each 16 KiB, and none after it turned out not to be JSON", () => {
  const countSteps = (text: Buffer) => Array.from(readJsonInSteps(text, createSlot())).length;
  expect(countSteps(Buffer.from("{}"))).toBe(1);
  expect(countSteps(Buffer.alloc(1_000_000, "["))).toBe(62);
  expect(countSteps(Buffer.alloc(1_000_000, "]"))).toBe(0);
  expect(isValid(Buffer.alloc(0))).toBe(false);
});
