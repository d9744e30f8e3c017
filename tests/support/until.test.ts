import { expect, test } from "bun:test";
import { rejectionOf } from "./rejection.ts";
import { until } from "./until.ts";

test("the first value that is there is given back, zero and empty text too", async () => {
  let calls = 0;
  expect(await until(() => (++calls < 3 ? undefined : { calls }))).toEqual({ calls: 3 });
  expect(await until(() => 0)).toBe(0);
  expect(await until(async () => "")).toBe("");
});

test("a condition may fail until it holds", async () => {
  let calls = 0;
  const value = await until(() => {
    if (++calls < 3) throw new Error("not yet");
    return calls;
  });
  expect(value).toBe(3);
});

test("a condition that never holds is named after the deadline, with its last error", async () => {
  const error = await rejectionOf(until(() => JSON.parse("{"), 30));
  expect(String(error)).toContain("JSON.parse");
  expect(error).toHaveProperty("cause", expect.any(SyntaxError));
});
