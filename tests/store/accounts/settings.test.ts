import { expect, test } from "bun:test";
import { onEachEngine } from "../each-engine.ts";

onEachEngine(({ openTestStore }) => {
  test("two processes that set a setting for the first time get the same value", async () => {
    await using one = await openTestStore();
    await using two = await one.openAnother();
    const values = await Promise.all([
      one.store.settings.setIfAbsent("name", "one"),
      two.store.settings.setIfAbsent("name", "two"),
    ]);
    expect(values[0]).toBe(values[1] ?? "");
    expect(await one.store.settings.find("name")).toBe(values[0] ?? "");
  });
});
