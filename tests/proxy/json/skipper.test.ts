import { describe, expect, test } from "bun:test";
import { createJsonSkipper, createStringEnd } from "../../../src/proxy/json/skipper.ts";
import { cutAtEveryByte } from "../../support/random.ts";

/** @returns how many bytes of the pieces the skipper skips */
function skippedLength(pieces: readonly Uint8Array[]): number {
  const skipper = createJsonSkipper();
  let length = 0;
  for (const piece of pieces) {
    let at = 0;
    if (length === 0 && piece[0] !== undefined && skipper.open(piece[0])) at = 1;
    while (at < piece.length && skipper.isOpen()) at = skipper.skip(piece, at);
    length += at;
  }
  return length;
}

describe("JSON skipper", () => {
  test.each([
    '"a"',
    '""',
    '"\\""',
    '"\\\\"',
    '"\\\\\\""',
    "[]",
    '[[1,"]"],{"}":"\\"]"}]',
    '{"a":{"b":[null,true,1e5]}}',
  ])("skips %s and no more, cut at every byte", (json) => {
    const bytes = Buffer.from(`${json},"}]`);
    for (const pieces of cutAtEveryByte(bytes)) expect(skippedLength(pieces)).toBe(json.length);
  });

  test.each(["1", "true", "null", "}", ","])("skips nothing at %s", (json) => {
    expect(skippedLength([Buffer.from(json)])).toBe(0);
  });

  test("skips a million nested brackets without recursion", () => {
    const json = "[".repeat(1_000_000) + "]".repeat(1_000_000);
    expect(skippedLength([Buffer.from(`${json}]`)])).toBe(json.length);
  });
});

describe("createStringEnd", () => {
  test("ignores a quote if the piece before ended in a backslash", () => {
    const end = createStringEnd();
    expect(end.find(Buffer.from("a\\"), 0)).toBe(2);
    expect(end.find(Buffer.from('"b\\\\'), 0)).toBe(4);
    expect(end.find(Buffer.from('"'), 0)).toBe(0);
  });
});
