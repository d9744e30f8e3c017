import { expect, test } from "bun:test";
import { countTokens, fullText, tokenText } from "../../src/simulator/text.ts";

test("an answer has as many tokens as were asked for, and the stream's texts join to the whole", () => {
  const speech = { outputTokens: 300, thinkTokens: 0 };
  const tokens = Array.from({ length: 300 }, (_, index) => tokenText(speech, index));
  expect(tokens.every((token) => token !== "")).toBe(true);
  expect(tokens.join("")).toBe(fullText(speech));
  expect(fullText(speech).split(" ")).toHaveLength(300);
});

test("thinking is one block in front of the answer", () => {
  expect(fullText({ outputTokens: 12, thinkTokens: 6 })).toMatch(/^<think>[^<>]+<\/think>\n\n[^<>\s][^<>]+$/);
  expect(fullText({ outputTokens: 4, thinkTokens: 2 })).toMatch(/^<think><\/think>\n\n\w+ \w+$/);
  expect(fullText({ outputTokens: 12, thinkTokens: 0 })).not.toContain("think");
});

test("tokens of any JSON value are counted, and always alike", () => {
  expect(countTokens("")).toBe(0);
  expect(countTokens("four")).toBe(1);
  expect(countTokens("five!")).toBe(2);
  expect(countTokens([1, 2, 3])).toBe(3);
  expect(countTokens([{ role: "user", content: [{ type: "text", text: "abcdefgh" }] }, null, true])).toBe(4);
});
