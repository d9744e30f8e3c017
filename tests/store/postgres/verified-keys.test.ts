import { expect, test } from "bun:test";
import { createVerifiedKeys } from "../../../src/store/postgres/verified-keys.ts";

function setUp() {
  const state = {
    now: 0,
    unavailable: false,
    active: new Map([["good", 1]]),
    expiresAt: null as number | null,
    timeouts: [] as number[],
  };
  const findActive = createVerifiedKeys({
    clock: () => state.now,
    find: async (key, timeoutMs) => {
      state.timeouts.push(timeoutMs);
      if (state.unavailable) throw new Error("unavailable");
      const id = state.active.get(key);
      return id === undefined ? undefined : { id, rules: null, expiresAt: state.expiresAt };
    },
  });
  return { state, findActive };
}

test("a key whose expiry passes while the database is unavailable is refused", async () => {
  const { state, findActive } = setUp();
  state.expiresAt = 1000;
  expect(await findActive("good")).toBeDefined();
  state.unavailable = true;
  state.now = 999;
  expect(await findActive("good")).toBeDefined();
  state.now = 1000;
  expect(await findActive("good")).toBeUndefined();
});

test("the result of a query takes precedence over a verified key", async () => {
  const { state, findActive } = setUp();
  await findActive("good");
  state.active.clear();
  expect(await findActive("good")).toBeUndefined();
  state.unavailable = true;
  await expect(findActive("good")).rejects.toThrow("unavailable");
});

test("the last five thousand keys at least are kept, and those verified longest ago are dropped", async () => {
  const { state, findActive } = setUp();
  for (let n = 0; n <= 10_000; n++) {
    state.active.set(`key ${n}`, n);
    await findActive(`key ${n}`);
    if (n === 5000) await findActive("key 0");
  }
  state.unavailable = true;
  await expect(findActive("key 1")).rejects.toThrow("unavailable");
  expect(await findActive("key 0")).toMatchObject({ id: 0, rules: null });
  expect(await findActive("key 5001")).toMatchObject({ id: 5001, rules: null });
});
