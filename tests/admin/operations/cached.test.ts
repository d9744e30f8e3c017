import { expect, test } from "bun:test";
import { cached } from "../../../src/admin/operations/health.ts";

test("loads once, shares the value, and loads again when it is too old", async () => {
  let now = 0;
  let loads = 0;
  const load = cached(
    () => now,
    100,
    async () => (loads += 1),
  );
  expect(await Promise.all([load(), load()])).toEqual([1, 1]);
  now = 99;
  expect(await load()).toBe(1);
  now = 100;
  expect(await load()).toBe(2);
});
