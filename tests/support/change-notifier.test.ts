import { expect, test } from "bun:test";
import { createChangeNotifier } from "./change-notifier.ts";
import { rejectionOf } from "./rejection.ts";

test("a waiter gets an existing value, or the first one after a change", async () => {
  const notifier = createChangeNotifier(10_000, () => "");
  let value: number | undefined = 1;
  expect(await notifier.waitFor("value", () => value)).toBe(1);
  value = undefined;
  const waiting = notifier.waitFor("value", () => value);
  notifier.notify();
  value = 2;
  notifier.notify();
  value = 3;
  notifier.notify();
  expect(await waiting).toBe(2);
});

test("an error of the check ends the wait, and so does the deadline", async () => {
  const notifier = createChangeNotifier(20, () => "nothing at all");
  const broken = notifier.waitFor("value", () => {
    throw new Error("broken");
  });
  expect(String(await rejectionOf(broken))).toBe("Error: broken");
  const late = await rejectionOf(notifier.waitFor("value", () => undefined));
  expect(String(late)).toBe("Error: No value within 20 ms; received so far: nothing at all");
});
