import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { findQuoteIn, idOf, type SearchedText } from "../../../src/proxy/json/quote-search.ts";
import { findQuote, notJson } from "../../../src/proxy/json/tokens.ts";

/** Long enough for the native search. */
const padding = 3000;
/** Of text in the memory of the search. */
const window = 16 * 1024;

const textOf = (bytes: Uint8Array): SearchedText => ({ bytes, id: idOf(bytes) });

/** From limit to limit, as a scan that is interrupted there. @returns the position of the quote; `notJson` if there is none */
function searchAll({ bytes, id }: SearchedText, limits: readonly number[], from = 0): number {
  let at = from;
  for (const limit of [...limits.toSorted((a, b) => a - b), bytes.length]) {
    if (at >= limit) continue;
    at = findQuoteIn({ bytes, id }, at, limit);
    if (at < limit) return at;
  }
  return notJson;
}

function expected(bytes: Uint8Array, from = 0): number {
  const at = findQuote(bytes, from, bytes.length);
  return at < bytes.length ? at : notJson;
}

/** What strings are made of, and what ends them. */
const piece = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom("a", "한", "é", "plain words", " ".repeat(16), "x".repeat(40)) },
  {
    weight: 4,
    arbitrary: fc.constantFrom("\\n", '\\"', "\\\\", "\\/", "\\b", "\\f", "\\r", "\\t", "\\u00e9", "\\\\\\\\"),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom('"', "\\", "\\u", "\\u12", "\\uzzzz", "\\x", "\\ ", "\n", "\0", "\u001f", "\\\0"),
  },
);
const text = fc.array(piece, { maxLength: 60 }).map((pieces) => Buffer.from(pieces.join("")));

describe("the native search for the end of a string", () => {
  test("runs on this processor", () => {
    expect(idOf(new Uint8Array(padding))).toBeGreaterThan(0);
    expect(idOf(new Uint8Array(1000))).toBe(0);
  });

  test("finds what is found byte by byte, wherever it is interrupted", () => {
    fc.assert(
      fc.property(text, fc.array(fc.nat(400)), fc.nat(100), (bytes, limits, before) => {
        const whole = Buffer.concat([Buffer.alloc(before, "x"), bytes, Buffer.alloc(padding, "x")]);
        expect(searchAll(textOf(whole), limits)).toBe(expected(whole));
      }),
      { numRuns: 2000 },
    );
  });

  test("does so at the end of a text, where nothing follows", () => {
    fc.assert(
      fc.property(text, (bytes) => {
        const whole = Buffer.concat([Buffer.alloc(padding, "x"), bytes]);
        expect(searchAll(textOf(whole), [])).toBe(expected(whole));
      }),
      { numRuns: 1000 },
    );
  });

  test.each([
    '"',
    '\\"',
    "\\\\",
    "\\n",
    "\\u00e9",
    "\\u00eg",
    "\\x",
    "\u0001",
    '\\\\"',
    '\\\\\\"',
    "\\".repeat(33),
    "\\".repeat(34),
  ])("does so where the part in its memory ends (%j)", (special) => {
    for (let before = window - 60; before <= window + 40; before += 1) {
      const whole = Buffer.from(`${"x".repeat(before)}${special}${"y".repeat(window)}"`);
      expect(searchAll(textOf(whole), [])).toBe(expected(whole));
      expect(searchAll(textOf(whole), [window, 2 * window])).toBe(expected(whole));
    }
  });

  test("takes no part of another text for its own", () => {
    const texts = ['a"', "b", "\\c"].map((end) => textOf(Buffer.from(`${end}${"x".repeat(padding)}${end}"`)));
    for (let from = 0; from < 2 * padding; from += 50) {
      for (const one of texts) expect(searchAll(one, [], from)).toBe(expected(one.bytes, from));
    }
  });
});
