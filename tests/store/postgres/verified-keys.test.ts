import { expect, test } from "bun:test";
import { createVerifiedKeys } from "../../../src/store/postgres/verified-keys.ts";

function setUp() {
  const state = { now: 0, away: false, active: new Map([["good", 1]]), patience: [] as number[] };
  const findActive = createVerifiedKeys({
    clock: () => state.now,
    ask: async (key, timeoutMs) => {
      state.patience.push(timeoutMs);
      if (state.away) throw new Error("away");
      const id = state.active.get(key);
      return id === undefined ? undefined : { id };
    },
  });
  return { state, findActive };
}

test("a key that was verified opens for five minutes while the database is away, and no longer", async () => {
  const { state, findActive } = setUp();
  expect(await findActive("good")).toEqual({ id: 1 });
  state.away = true;
  state.now = 300_000;
  expect(await findActive("good")).toEqual({ id: 1 });
  state.now = 300_001;
  await expect(findActive("good")).rejects.toThrow("away");
});

test("a key that was never verified does not open while the database is away", async () => {
  const { state, findActive } = setUp();
  state.away = true;
  await expect(findActive("good")).rejects.toThrow("away");
});

test("an answer of the database goes before what is remembered", async () => {
  const { state, findActive } = setUp();
  await findActive("good");
  state.active.clear();
  expect(await findActive("good")).toBeUndefined();
  state.away = true;
  await expect(findActive("good")).rejects.toThrow("away");
});

test("a database that is known to be away is waited for less, until it answers again", async () => {
  const { state, findActive } = setUp();
  await findActive("good");
  state.away = true;
  await findActive("good");
  await findActive("good");
  state.away = false;
  await findActive("good");
  await findActive("good");
  const [well = 0, , known = 0] = state.patience;
  expect(known).toBeLessThan(well);
  expect(state.patience).toEqual([well, well, known, known, well]);
});

test("ten thousand keys are remembered, and the one that was verified longest ago is forgotten first", async () => {
  const { state, findActive } = setUp();
  for (let n = 0; n <= 10_000; n++) {
    state.active.set(`key ${n}`, n);
    await findActive(`key ${n}`);
    if (n === 5000) await findActive("key 0");
  }
  state.away = true;
  await expect(findActive("key 1")).rejects.toThrow("away");
  expect(await findActive("key 0")).toEqual({ id: 0 });
  expect(await findActive("key 2")).toEqual({ id: 2 });
});
