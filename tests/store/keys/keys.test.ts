import { expect, test } from "bun:test";
import { createSqlStore } from "../../../src/store/sql-store.ts";
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

  test("the users beyond as many as a full key may have take no lock, but once a second", async () => {
    let now = 1000;
    await using opened = await openTestEngine(() => now);
    let transactions = 0;
    const { transaction } = opened.engine;
    const counting: typeof transaction = (work) => ((transactions += 1), transaction(work));
    const { subjects } = createSqlStore({ ...opened.engine, transaction: counting }, () => now);
    const [keyId = 0] = await createKeys(opened.store, ["a"]);
    const see = (external: string, more: { source?: string; max?: number; name?: string } = {}) =>
      subjects.see({ keyId, source: `key:${keyId}`, external, name: undefined, max: 2, ...more });
    const known = [await see("a"), await see("b")];
    const other = await see("c");
    transactions = 0;
    for (let one = 0; one < 1000; one++) expect(await see(`made up ${one}`, { name: `Kim ${one}` })).toEqual(other);
    // One that is too long to be told apart, of users that several keys share too.
    for (const source of [`key:${keyId}`, "open-webui@prod"]) expect(await see("", { source })).toEqual(other);
    expect([await see("a"), await see("b")]).toEqual(known);
    expect(transactions).toBe(0);
    expect(await subjects.list({ kind: "user", keyId })).toMatchObject([
      { name: "a" },
      { name: "b" },
      { name: "other" },
    ]);
    // A key that may have more has them from its next request on; one that lost a user, within a second.
    expect((await see("d", { max: 3 })).id).not.toBe(other.id);
    await see("e", { max: 3 });
    await subjects.delete("user", known[0]?.id ?? 0, false);
    expect(await see("e", { max: 3 })).toEqual(other);
    now += 1000;
    expect((await see("e", { max: 3 })).id).not.toBe(other.id);
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
