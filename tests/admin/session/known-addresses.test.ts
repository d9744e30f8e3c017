import { afterEach, beforeEach, expect, test } from "bun:test";
import { createKnownAddresses } from "../../../src/admin/session/known-addresses.ts";
import { createLog } from "../../../src/log/log.ts";
import { pollUntil } from "../../support/poll-until.ts";
import { passTicks } from "../../support/event-loop.ts";
import { openTestStore, type TestStore } from "../support/store.ts";
import { StorageError } from "../../../src/store/storage-error.ts";
import type { SettingsStore } from "../../../src/store/accounts/contract.ts";

const minute = 60_000;
const day = 1440 * minute;
const time = { now: 0 };
const logged: string[] = [];
let opened: TestStore;
beforeEach(async () => {
  time.now = 1_000_000;
  logged.length = 0;
  opened = await openTestStore(time);
});
afterEach(() => opened.remove());

/** One process on the database. */
function open(settings: SettingsStore = opened.store.settings): ReturnType<typeof createKnownAddresses> {
  const clock = () => time.now;
  const log = createLog({ level: "debug", format: "json", clock, write: (line) => logged.push(line) });
  return createKnownAddresses({ store: { settings }, clock, log });
}

test("an address is known from its login on, for 30 days, across restarts", async () => {
  const first = open();
  expect(await first.has("192.0.2.1")).toBe(false);
  await first.add("192.0.2.1");
  expect([await first.has("192.0.2.1"), await first.has("192.0.2.2")]).toEqual([true, false]);
  time.now += 30 * day - 1;
  const restarted = open();
  expect(await restarted.has("192.0.2.1")).toBe(true);
  time.now += 1;
  expect([await first.has("192.0.2.1"), await restarted.has("192.0.2.1")]).toEqual([false, false]);
  await restarted.add("192.0.2.2");
  expect(await opened.store.settings.find("login_addresses")).not.toContain("192.0.2.1");
});

test("an address that logged in at another process is known within a minute", async () => {
  const [here, there] = [open(), open()];
  expect(await there.has("192.0.2.1")).toBe(false);
  await here.add("192.0.2.1");
  time.now += minute;
  // The list is read again without waiting for it.
  await pollUntil(() => there.has("192.0.2.1"));
});

test("at most 1,000 addresses are kept, those of the latest logins", async () => {
  const many = Array.from({ length: 1000 }, (_, index) => [`address ${index}`, time.now]);
  await opened.store.settings.set("login_addresses", JSON.stringify(many));
  const addresses = open();
  await addresses.add("192.0.2.1");
  const stored = JSON.parse((await opened.store.settings.find("login_addresses")) ?? "") as [string, number][];
  expect([stored.length, stored[0]]).toEqual([1000, ["192.0.2.1", time.now]]);
  expect([await addresses.has("address 998"), await addresses.has("address 999")]).toEqual([true, false]);
});

test("while the database is unavailable, known addresses stay known, and a login is not refused", async () => {
  let isAway = false;
  const { settings } = opened.store;
  const find = (name: string) => (isAway ? Promise.reject(new StorageError("away")) : settings.find(name));
  const addresses = open({ ...settings, find });
  await addresses.add("192.0.2.1");
  isAway = true;
  time.now += minute;
  await addresses.add("192.0.2.2");
  expect(logged.join("")).toContain("Login address not saved");
  await passTicks();
  expect(await addresses.has("192.0.2.1")).toBe(true);
});
