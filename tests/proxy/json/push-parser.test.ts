import { expect, test } from "bun:test";
import { PushParser } from "../../../src/proxy/json/push-parser.ts";
import { cutAtEveryByte } from "../../support/random.ts";

function parse(pieces: readonly Uint8Array[]): unknown {
  const parser = new PushParser(new Set(["kept"]), "total", JSON.parse);
  for (const piece of pieces) parser.push(piece);
  return parser.document();
}

test.each([
  '"a"',
  '""',
  '"\\""',
  '"\\\\"',
  '"\\\\\\""',
  "[]",
  '[[1,"]"],{"}":"\\"]"}]',
  '{"a":{"b":[null,true,1e5]}}',
  "null",
  "-1.5e3",
])("skips %s and no more, cut at every byte", (json) => {
  const bytes = Buffer.from(`{"other":${json},"kept":7}`);
  for (const pieces of cutAtEveryByte(bytes)) expect(parse(pieces)).toEqual({ kept: 7 });
});

test("skips a million nested brackets without recursion", () => {
  const json = "[".repeat(1_000_000) + "]".repeat(1_000_000);
  expect(parse([Buffer.from(`{"other":${json},"kept":7}`)])).toEqual({ kept: 7 });
});

test("keeps what a text that is cut has so far, but a member that its other members decide on", () => {
  expect(parse([Buffer.from('{"kept":{"kept":7,"other":[{"kept":8}')])).toEqual({ kept: { kept: 7 } });
  const parser = new PushParser(new Set(["kept", "total"]), "total", JSON.parse);
  parser.push(Buffer.from('[{"total":9},{"kept":1,"total":9'));
  expect(parser.document()).toEqual([{ kept: 1 }]);
});
