import { expect, test } from "bun:test";
import { onEachEngine } from "./each-engine.ts";

const session = { csrfToken: "token", username: "admin", expiresAt: 10_000 };

onEachEngine(({ openTestStore }) => {
  test("a session is found until it expires", async () => {
    await using opened = await openTestStore(() => 0);
    const { sessions } = opened.store;
    await sessions.create("hash", session);
    expect(await sessions.find("hash", 9999)).toEqual(session);
    expect(await sessions.find("hash", 10_000)).toBeUndefined();
    expect(await sessions.find("other", 0)).toBeUndefined();
  });

  test("a session that is extended expires later and keeps its token", async () => {
    await using opened = await openTestStore(() => 0);
    const { sessions } = opened.store;
    await sessions.create("hash", session);
    await sessions.extend("hash", 20_000);
    expect(await sessions.find("hash", 15_000)).toEqual({ ...session, expiresAt: 20_000 });
  });

  test("a deleted session is not found, and none is after all are deleted", async () => {
    await using opened = await openTestStore(() => 0);
    const { sessions } = opened.store;
    for (const hash of ["a", "b", "c"]) await sessions.create(hash, session);
    const found = () => Promise.all(["a", "b", "c"].map(async (hash) => sessions.find(hash, 0)));
    await sessions.delete("a");
    expect(await found()).toEqual([undefined, session, session]);
    await sessions.deleteAll();
    expect(await found()).toEqual([undefined, undefined, undefined]);
  });

  test("creating a session deletes the expired ones", async () => {
    let now = 0;
    await using opened = await openTestStore(() => now);
    const { sessions } = opened.store;
    await sessions.create("old", session);
    now = 10_000;
    await sessions.create("new", { ...session, expiresAt: 30_000 });
    // If the row still existed, it would be found at an earlier time.
    expect(await sessions.find("old", 0)).toBeUndefined();
    expect(await sessions.find("new", 0)).toBeDefined();
  });

  test("the eleventh login attempt within a minute must wait until the first is a minute old", async () => {
    await using opened = await openTestStore();
    const { sessions } = opened.store;
    const attempt = (now: number) => sessions.countLoginAttempt("10.0.0.1", now);
    for (let n = 0; n < 10; n++) expect(await attempt(1000 + n * 100)).toBe(0);
    expect(await attempt(2000)).toBe(59_000);
    expect(await attempt(60_999)).toBe(1);
    expect(await attempt(61_000)).toBe(0);
    expect(await attempt(61_001)).toBe(99);
  });

  test("login attempts of one address do not delay another", async () => {
    await using opened = await openTestStore();
    const { sessions } = opened.store;
    for (let n = 0; n < 10; n++) await sessions.countLoginAttempt("10.0.0.1", 1000);
    expect(await sessions.countLoginAttempt("10.0.0.1", 1000)).toBe(60_000);
    expect(await sessions.countLoginAttempt("10.0.0.2", 1000)).toBe(0);
  });

  test("concurrent login attempts at two processes on one database count together", async () => {
    await using one = await openTestStore();
    await using two = await one.openAnother();
    const waits = await Promise.all(
      Array.from({ length: 24 }, (_, n) => [one, two][n % 2]?.store.sessions.countLoginAttempt("::1", 5000)),
    );
    expect(waits.filter((wait) => wait === 0)).toHaveLength(10);
  });

  test("a clock that is set back does not lock an address out", async () => {
    await using opened = await openTestStore();
    const { sessions } = opened.store;
    for (let n = 0; n < 10; n++) await sessions.countLoginAttempt("10.0.0.1", 900_000);
    expect(await sessions.countLoginAttempt("10.0.0.1", 100_000)).toBe(0);
  });
});
