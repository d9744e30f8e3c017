import { expect, test } from "bun:test";
import { onEachEngine } from "../each-engine.ts";
import { createKeys } from "../test-store.ts";

onEachEngine(({ openTestEngine, openTestStore }) => {
  test("a key is found with the time from which it is refused, and a former secret with its own", async () => {
    await using opened = await openTestStore(() => 1000);
    const { keys } = opened.store;
    const id = 1;
    await createKeys(opened.store, ["a"]);
    await keys.update(id, { expiresAt: 9000 });
    await keys.rotate(id, { key: "new", now: 1000, validUntil: 5000 });
    expect(await keys.findActive("new")).toMatchObject({ id, expiresAt: 9000 });
    expect(await keys.findActive("secret of a")).toMatchObject({ id, expiresAt: 5000 });
    await keys.update(id, { expiresAt: 3000 });
    expect(await keys.findActive("secret of a")).toEqual({ id, rules: null, expiresAt: 3000 });
  });

  test("a former secret can be given again once it is accepted no more", async () => {
    let now = 1000;
    await using opened = await openTestEngine(() => now);
    const { keys } = opened.store;
    const [id = 0, other = 0] = await createKeys(opened.store, ["a", "b"]);
    await keys.rotate(id, { key: "new", now, validUntil: 5000 });
    const former = "secret of a";
    const create = () => keys.create({ name: "c", key: former, createdAt: 0 });
    const rotate = () => keys.rotate(other, { key: former, now, validUntil: now });
    expect([await create(), await rotate()]).toEqual(["collision", "collision"]);
    now = 5000;
    expect(await rotate()).toMatchObject({ id: other });
    expect(await keys.findActive(former)).toMatchObject({ id: other });
  });

  test("keys are active that are neither switched off nor expired", async () => {
    let now = 1000;
    await using opened = await openTestEngine(() => now);
    const { keys } = opened.store;
    const [off = 0, expiring = 0] = await createKeys(opened.store, ["off", "expiring", "on"]);
    await keys.update(off, { isActive: false });
    await keys.update(expiring, { expiresAt: 2000 });
    expect(await keys.countActive()).toBe(2);
    now = 2000;
    expect(await keys.countActive()).toBe(1);
  });

  test("the id of a deleted key is not reused, not even after a restart", async () => {
    await using first = await openTestStore();
    await createKeys(first.store, ["a", "b"]);
    expect(await first.store.keys.delete(2)).toBe("b");
    await first.store.close();
    await using second = await first.openAnother();
    expect(await createKeys(second.store, ["c"])).toEqual([3]);
  });

  test("any text can be looked up as a key", async () => {
    await using opened = await openTestStore();
    await createKeys(opened.store, ["a"]);
    for (const key of ["", "' or 1=1 --", "%", "\0", "x".repeat(100_000), "🔑"]) {
      expect(await opened.store.keys.findActive(key)).toBeUndefined();
    }
  });
});
