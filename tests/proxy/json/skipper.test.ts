import { describe, expect, test } from "bun:test";
import { createJsonSkipper, createStringEnd } from "../../../src/proxy/json/skipper.ts";
import { cutAtEveryByte } from "../../support/random.ts";

/** @returns how many bytes the skipper took of the value that the pieces begin with */
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
  ])("gets past %s and no further, cut at every byte", (json) => {
    const bytes = Buffer.from(`${json},"}]`);
    for (const pieces of cutAtEveryByte(bytes)) expect(skippedLength(pieces)).toBe(json.length);
  });

  test.each(["1", "true", "null", "}", ","])("opens nothing at %s", (json) => {
    expect(skippedLength([Buffer.from(json)])).toBe(0);
  });

  test("counts a million open brackets without a deep call", () => {
    const json = "[".repeat(1_000_000) + "]".repeat(1_000_000);
    expect(skippedLength([Buffer.from(`${json}]`)])).toBe(json.length);
  });
});

describe("the end of a JSON string", () => {
  test("is not behind a backslash that another piece began with", () => {
    const end = createStringEnd();
    expect(end.find(Buffer.from("a\\"), 0)).toBe(2);
    expect(end.find(Buffer.from('"b\\\\'), 0)).toBe(4);
    expect(end.find(Buffer.from('"'), 0)).toBe(0);
  });
});
