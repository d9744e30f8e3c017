import { expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { onEachEngine } from "./each-engine.ts";
import { createKeys } from "./test-store.ts";

onEachEngine(({ openTestStore }) => {
  test("the size of a database is known, and grows with its rows", async () => {
    await using opened = await openTestStore();
    const before = await opened.store.size();
    // Random, because PostgreSQL compresses long names; and more than rows that other tests deleted may have left free.
    await createKeys(
      opened.store,
      Array.from({ length: 200 }, () => randomBytes(1200).toString("base64")),
    );
    const after = await opened.store.size();
    expect(before.bytes).toBeGreaterThan(0);
    expect(after.bytes + (after.logBytes ?? 0)).toBeGreaterThan(before.bytes + (before.logBytes ?? 0));
  });
});
