import { expect, test } from "bun:test";
import { noRules } from "../../../src/store/keys/rules.ts";
import { onEachEngine } from "../each-engine.ts";
import { createKeys, readReport, usageIncrement, type DailyRow } from "../test-store.ts";

onEachEngine(({ openTestEngine, openTestStore }) => {
  test("a key is found until it is switched off, and again after it is switched on", async () => {
    await using opened = await openTestStore();
    const { keys } = opened.store;
    const created = await keys.create({ name: "ci", key: "secret", createdAt: 1234 });
    expect(created).toEqual({
      id: 1,
      key: "secret",
      name: "ci",
      isActive: true,
      createdAt: 1234,
      lastUsedAt: null,
      requestCount: 0,
      inputTokens: 0,
      outputTokens: 0,
      estimatedTokens: 0,
      expiresAt: null,
      rules: noRules,
      owner: null,
      note: null,
      tags: [],
    });
    expect(await keys.findActive("secret")).toEqual({ id: 1, rules: null, expiresAt: null });
    expect(await keys.findActive("Secret")).toBeUndefined();
    expect(await keys.update(1, { isActive: false })).toMatchObject({ id: 1, name: "ci", isActive: false });
    expect(await keys.findActive("secret")).toBeUndefined();
    await keys.update(1, { isActive: true });
    expect(await keys.findActive("secret")).toEqual({ id: 1, rules: null, expiresAt: null });
  });

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

  test("keys are listed by id, either all of them or a page after one of them", async () => {
    await using opened = await openTestEngine();
    const { keys } = opened.store;
    await createKeys(opened.store, ["a", "b", "c", "d"]);
    await keys.delete(2);
    const names = async (page?: { after: number; limit: number }) => (await keys.list(page)).map(({ name }) => name);
    expect(await names()).toEqual(["a", "c", "d"]);
    expect(await names({ after: 0, limit: 2 })).toEqual(["a", "c"]);
    expect(await names({ after: 3, limit: 2 })).toEqual(["d"]);
    expect(await names({ after: 4, limit: 2 })).toEqual([]);
  });

  test("creating a key that exists is a collision and changes nothing", async () => {
    await using opened = await openTestEngine();
    const { keys } = opened.store;
    await keys.create({ name: "a", key: "same", createdAt: 0 });
    expect(await keys.create({ name: "b", key: "same", createdAt: 0 })).toBe("collision");
    expect((await keys.list()).map(({ id, name }) => [id, name])).toEqual([[1, "a"]]);
  });

  test("the id of a deleted key is not reused, not even after a restart", async () => {
    await using first = await openTestStore();
    await createKeys(first.store, ["a", "b"]);
    expect(await first.store.keys.delete(2)).toBe("b");
    await first.store.close();
    await using second = await first.openAnother();
    expect(await createKeys(second.store, ["c"])).toEqual([3]);
  });

  test("a deleted key is not found, and its usage rows keep its last name", async () => {
    await using opened = await openTestStore();
    const { keys, usage } = opened.store;
    const [id = 0] = await createKeys(opened.store, ["old name"]);
    await usage.add([usageIncrement({ keyId: id, minute: 29_000_000 })]);
    await keys.update(id, { name: 'last "name" 이름' });
    expect(await keys.delete(id)).toBe('last "name" 이름');
    expect(await keys.delete(id)).toBeUndefined();
    expect(await keys.list()).toEqual([]);
    expect(await keys.findActive("secret of old name")).toBeUndefined();
    expect(await readReport<DailyRow>(usage.daily("1970-01-01"))).toMatchObject([
      { key_id: id, key_name: 'last "name" 이름', request_count: 1 },
    ]);
  });

  test("updating or deleting a key that does not exist changes nothing", async () => {
    await using opened = await openTestEngine();
    expect(await opened.store.keys.update(7, { name: "x" })).toBeUndefined();
    expect(await opened.store.keys.delete(7)).toBeUndefined();
  });

  test("only the keys that are switched on are counted as active", async () => {
    await using opened = await openTestEngine();
    await createKeys(opened.store, ["a", "b", "c"]);
    await opened.store.keys.update(2, { isActive: false });
    expect(await opened.store.keys.countActive()).toBe(2);
  });

  test("any text can be looked up as a key", async () => {
    await using opened = await openTestStore();
    await createKeys(opened.store, ["a"]);
    for (const key of ["", "' or 1=1 --", "%", "\0", "x".repeat(100_000), "🔑"]) {
      expect(await opened.store.keys.findActive(key)).toBeUndefined();
    }
  });
});
