import { expect, test } from "bun:test";
import { Database } from "bun:sqlite";
import { chownSync, mkdirSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { FoundKey } from "../../../src/store/keys/contract.ts";
import { cacheKeys } from "../../../src/store/keys/key-and-user-cache.ts";
import { openKeysVersion } from "../../../src/store/sqlite/keys-version.ts";
import { createTempFolder } from "../../support/temp-folder.ts";
import { createKeys, openTestStore } from "../test-store.ts";

const keyOf = (id: number, expiresAt: number | null = null): FoundKey => ({ id, rules: null, expiresAt });

/** Known keys over a database of a few keys whose look-ups are recorded. */
function startKnownKeys() {
  const state = { now: 1_000_000, version: new Int32Array(1) };
  const database = new Map([
    ["a", keyOf(1)],
    ["expires", keyOf(2, 1_000_500)],
  ]);
  const lookUps: string[] = [];
  const find = cacheKeys(
    (key) => {
      lookUps.push(key);
      return database.get(key);
    },
    state.version,
    () => state.now,
  );
  return { state, database, lookUps, find };
}

test("a key is looked up once while no key changes, and one that does not exist each time", () => {
  const { find, lookUps } = startKnownKeys();
  for (let n = 0; n < 3; n++) expect(find("a")).toEqual(keyOf(1));
  for (let n = 0; n < 2; n++) expect(find("unknown")).toBeUndefined();
  expect(lookUps).toEqual(["a", "unknown", "unknown"]);
});

test("a change of the version during a look-up counts for what it found", () => {
  const state = { version: new Int32Array(1), isActive: true };
  const find = cacheKeys(
    () => {
      const found = state.isActive ? keyOf(1) : undefined;
      // The change is committed after the look-up has read the old row.
      state.isActive = false;
      state.version[0] = 1;
      return found;
    },
    state.version,
    () => 1,
  );
  expect(find("a")).toEqual(keyOf(1));
  expect(find("a")).toBeUndefined();
});

test("a key that expires is looked up again from then on", () => {
  const { find, database, lookUps, state } = startKnownKeys();
  find("expires");
  state.now += 499;
  expect(find("expires")).toMatchObject({ id: 2 });
  database.delete("expires");
  state.now += 1;
  expect(find("expires")).toBeUndefined();
  expect(lookUps).toEqual(["expires", "expires"]);
});

test("ten thousand keys are known, and further ones are looked up each time", () => {
  let lookUps = 0;
  const find = cacheKeys(
    (key) => {
      lookUps++;
      return keyOf(Number(key));
    },
    new Int32Array(1),
    () => 1,
  );
  for (let id = 1; id <= 10_001; id++) find(String(id));
  expect(lookUps).toBe(10_001);
  expect(find("10000")).toEqual(keyOf(10_000));
  expect(lookUps).toBe(10_001);
  expect(find("10001")).toEqual(keyOf(10_001));
  expect(lookUps).toBe(10_002);
});

test("without a file that can be mapped, each key is looked up", () => {
  using folder = createTempFolder();
  const file = join(folder.path, "tollgate.db");
  mkdirSync(`${file}-keys`);
  expect(openKeysVersion(file)).toBeUndefined();
  let lookUps = 0;
  const find = cacheKeys(
    () => {
      lookUps++;
      return keyOf(1);
    },
    undefined,
    () => 1,
  );
  for (let n = 0; n < 2; n++) expect(find("a")).toEqual(keyOf(1));
  expect(lookUps).toBe(2);
});

test.skipIf(process.getuid?.() !== 0)(
  "a version that root opens first can be opened by the owner of the database",
  () => {
    using folder = createTempFolder();
    const file = join(folder.path, "tollgate.db");
    writeFileSync(file, "");
    chownSync(file, 65534, 65534);
    expect(openKeysVersion(file)).toBeDefined();
    const { uid, gid } = statSync(`${file}-keys`);
    expect([uid, gid]).toEqual([65534, 65534]);
  },
);

test("a file that is longer than a version keeps it", () => {
  using folder = createTempFolder();
  const file = join(folder.path, "tollgate.db");
  writeFileSync(`${file}-keys`, new Uint8Array([7, 0, 0, 0, 1, 1]));
  expect(openKeysVersion(file)?.[0]).toBe(7);
});

test("every change of a key in one store is seen by the next look-up of another", async () => {
  await using one = await openTestStore();
  await using two = await one.openAnother();
  const [id = 0] = await createKeys(one.store, ["a"]);
  const find = async (key: string) => two.store.keys.findActive(key);
  const rules = { rules: { scope: "gpu" } } as const;
  for (let round = 0; round < 50; round++) {
    expect(await find("secret of a")).toMatchObject({ id, rules: null });
    await one.store.keys.update(id, { isActive: false });
    expect(await find("secret of a")).toBeUndefined();
    await one.store.keys.update(id, { isActive: true, ...rules });
    expect(await find("secret of a")).toMatchObject({ rules: { scope: "gpu" } });
    await one.store.keys.update(id, { rules: { scope: "all" } });
  }
  await find("secret of a");
  await one.store.keys.rotate(id, { key: "new", now: 1, validUntil: 0 });
  expect(await find("secret of a")).toBeUndefined();
  expect(await find("new")).toMatchObject({ id });
  await one.store.keys.delete(id);
  expect(await find("new")).toBeUndefined();
});

test("another program's change of a key is seen within a second", async () => {
  let now = Date.now();
  await using opened = await openTestStore(() => now);
  await createKeys(opened.store, ["a"]);
  const find = async () => opened.store.keys.findActive("secret of a");
  expect(await find()).toMatchObject({ id: 1 });
  using other = new Database(opened.file);
  other.run("UPDATE keys SET is_active = 0");
  now += 1000;
  expect(await find()).toBeUndefined();
});

test("the number of changes has its place on the disk before it is written, and keeps its value when it is opened again", () => {
  const folder = createTempFolder();
  const file = join(folder.path, "tollgate.db");
  // A hole, as it was created once.
  writeFileSync(`${file}-keys`, "");
  truncateSync(`${file}-keys`, 4);
  const first = openKeysVersion(file);
  expect(statSync(`${file}-keys`).blocks).toBeGreaterThan(0);
  first?.fill(1);
  const { size } = statSync(`${file}-keys`);
  const second = openKeysVersion(file);
  expect([first?.[0], second?.[0], statSync(`${file}-keys`).size]).toEqual([1, 1, size]);
  folder.remove();
});
