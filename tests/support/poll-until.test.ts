import { expect, test } from "bun:test";
import { rejectionOf } from "./rejection.ts";
import { pollUntil } from "./poll-until.ts";

test("pollUntil returns the first value, including zero and empty text", async () => {
  let calls = 0;
  expect(await pollUntil(() => (++calls < 3 ? undefined : { calls }))).toEqual({ calls: 3 });
  expect(await pollUntil(() => 0)).toBe(0);
  expect(await pollUntil(async () => "")).toBe("");
});

test("a condition may throw until it holds", async () => {
  let calls = 0;
  const value = await pollUntil(() => {
    if (++calls < 3) throw new Error("not yet");
    return calls;
  });
  expect(value).toBe(3);
});

test("an error after the deadline shows the condition and its last error", async () => {
  const error = await rejectionOf(pollUntil(() => JSON.parse("{"), 30));
  expect(String(error)).toContain("JSON.parse");
  expect(error).toHaveProperty("cause", expect.any(SyntaxError));
});
