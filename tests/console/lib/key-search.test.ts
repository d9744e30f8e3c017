import { expect, test } from "bun:test";
import { matchesSearch } from "../../../console/src/lib/key-search.ts";

const key = { name: "Billing service", key: "ab12…yz89" };

test.each(["", "billing", "ice", "ab", "ab12", "12", "z89", "yz89", "ab12…yz89", "ab12-all-that-is-hidden-yz89"])(
  "%p finds the key",
  (text) => expect(matchesSearch(key, text)).toBe(true),
);

test.each(["other", "ab13", "ab12-all-that-is-hidden-yz88", "12yz", "ab12yz89x"])("%p does not find the key", (text) =>
  expect(matchesSearch(key, text)).toBe(false),
);

test.each(["kim", "for the demo", "team"])("%p finds the key by its owner, note or tag", (text) => {
  const noted = { ...key, owner: "Kim", note: "For the demo", tags: ["Team-A"] };
  expect([matchesSearch(noted, text), matchesSearch(key, text)]).toEqual([true, false]);
});

test("a short key has no visible end", () => {
  expect(matchesSearch({ name: "n", key: "…" }, "abcdefgh")).toBe(false);
});
