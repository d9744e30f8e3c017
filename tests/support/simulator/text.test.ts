import { expect, test } from "bun:test";
import { countTokens, fullText, tokenText } from "./text.ts";

test("a text has the requested number of tokens, and the tokens join to the whole text", () => {
  const text = { outputTokens: 300, thinkingTokens: 0 };
  const tokens = Array.from({ length: 300 }, (_, index) => tokenText(text, index));
  expect(tokens.every((token) => token !== "")).toBe(true);
  expect(tokens.join("")).toBe(fullText(text));
  expect(fullText(text).split(" ")).toHaveLength(300);
});

test("thinking is one block at the start", () => {
  expect(fullText({ outputTokens: 12, thinkingTokens: 6 })).toMatch(/^<think>[^<>]+<\/think>\n\n[^<>\s][^<>]+$/);
  expect(fullText({ outputTokens: 4, thinkingTokens: 2 })).toMatch(/^<think><\/think>\n\n\w+ \w+$/);
  expect(fullText({ outputTokens: 12, thinkingTokens: 0 })).not.toContain("think");
});

test("tokens of any JSON value are counted", () => {
  expect(countTokens("")).toBe(0);
  expect(countTokens("four")).toBe(1);
  expect(countTokens("five!")).toBe(2);
  expect(countTokens([1, 2, 3])).toBe(3);
  expect(countTokens([{ role: "user", content: [{ type: "text", text: "abcdefgh" }] }, null, true])).toBe(4);
});
