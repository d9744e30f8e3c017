import { expect, test } from "bun:test";
import { onEachEngine } from "../each-engine.ts";

onEachEngine(({ openTestStore }) => {
  test("a setting has the value that was set last", async () => {
    await using opened = await openTestStore();
    const { settings } = opened.store;
    expect(await settings.find("name")).toBeUndefined();
    await settings.set("name", "one");
    await settings.set("name", "two");
    expect(await settings.find("name")).toBe("two");
  });

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
