import { expect, test } from "bun:test";
import { onEachEngine } from "./each-engine.ts";
import { createKeys } from "./test-store.ts";

onEachEngine(({ openTestStore }) => {
  test("the size of a database is known, and grows with its rows", async () => {
    await using opened = await openTestStore();
    const before = await opened.store.size();
    await createKeys(
      opened.store,
      Array.from({ length: 500 }, (_, n) => `a key with a rather long name, so that it takes room: ${n}`),
    );
    const after = await opened.store.size();
    expect(before.bytes).toBeGreaterThan(0);
    expect(after.bytes + (after.logBytes ?? 0)).toBeGreaterThan(before.bytes + (before.logBytes ?? 0));
  });
});
