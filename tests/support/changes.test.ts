import { expect, test } from "bun:test";
import { createChanges } from "./changes.ts";
import { rejectionOf } from "./rejection.ts";

test("who waits gets what is there already, or looks again at each change", async () => {
  const changes = createChanges(10_000, () => "");
  let value: number | undefined = 1;
  expect(await changes.when("value", () => value)).toBe(1);
  value = undefined;
  const waiting = changes.when("value", () => value);
  changes.announce();
  value = 2;
  changes.announce();
  value = 3;
  changes.announce();
  expect(await waiting).toBe(2);
});

test("what a look throws ends the waiting, and so does the deadline", async () => {
  const changes = createChanges(20, () => "nothing at all");
  const broken = changes.when("value", () => {
    throw new Error("broken");
  });
  expect(String(await rejectionOf(broken))).toBe("Error: broken");
  const late = await rejectionOf(changes.when("value", () => undefined));
  expect(String(late)).toBe("Error: No value within 20 ms; came so far: nothing at all");
});
