import { expect, test } from "bun:test";
import { onEachEngine } from "../each-engine.ts";
import { maintain } from "../test-store.ts";

const session = { csrfToken: "token", username: "admin", expiresAt: 10_000 };

onEachEngine(({ openTestEngine, openTestStore }) => {
  test("a session is found until it expires", async () => {
    await using opened = await openTestStore(() => 0);
    const { sessions } = opened.store;
    await sessions.create("hash", session);
    expect(await sessions.find("hash", 9999)).toEqual(session);
    expect(await sessions.find("hash", 10_000)).toBeUndefined();
    expect(await sessions.find("other", 0)).toBeUndefined();
  });

  test("a session that is extended expires later and keeps its token", async () => {
    await using opened = await openTestEngine(() => 0);
    const { sessions } = opened.store;
    await sessions.create("hash", session);
    await sessions.extend("hash", 20_000);
    expect(await sessions.find("hash", 15_000)).toEqual({ ...session, expiresAt: 20_000 });
  });

  test("a deleted session is not found, and none is after all are deleted", async () => {
    await using opened = await openTestEngine(() => 0);
    const { sessions } = opened.store;
    for (const hash of ["a", "b", "c"]) await sessions.create(hash, session);
    const found = () => Promise.all(["a", "b", "c"].map(async (hash) => sessions.find(hash, 0)));
    await sessions.delete("a");
    expect(await found()).toEqual([undefined, session, session]);
    await sessions.deleteAll();
    expect(await found()).toEqual([undefined, undefined, undefined]);
  });

  test("maintenance deletes the expired ones", async () => {
    let now = 0;
    await using opened = await openTestEngine(() => now);
    const { sessions } = opened.store;
    await sessions.create("old", session);
    now = 10_000;
    await sessions.create("new", { ...session, expiresAt: 30_000 });
    expect(await sessions.find("old", 0)).toBeDefined();
    now = 10_001;
    await maintain(opened.store);
    // If the row still existed, it would be found at an earlier time.
    expect(await sessions.find("old", 0)).toBeUndefined();
    expect(await sessions.find("new", 0)).toBeDefined();
  });

  const tenAMinute = (scope: string) => [{ scope, attempts: 10 }];

  test("the eleventh login attempt within a minute must wait until the first is a minute old", async () => {
    await using opened = await openTestEngine();
    const { sessions } = opened.store;
    const waitOf = async (now: number) => (await sessions.countLoginAttempt(tenAMinute("10.0.0.1"), now))?.waitMs;
    for (let n = 0; n < 10; n++) expect(await waitOf(1000 + n * 100)).toBeUndefined();
    expect(await waitOf(2000)).toBe(59_000);
    expect(await waitOf(60_999)).toBe(1);
    expect(await waitOf(61_000)).toBeUndefined();
    expect(await waitOf(61_001)).toBe(99);
  });

  test("login attempts of one address do not delay another", async () => {
    await using opened = await openTestEngine();
    const { sessions } = opened.store;
    for (let n = 0; n < 10; n++) await sessions.countLoginAttempt(tenAMinute("10.0.0.1"), 1000);
    expect(await sessions.countLoginAttempt(tenAMinute("10.0.0.1"), 1000)).toEqual({
      scope: "10.0.0.1",
      waitMs: 60_000,
    });
    expect(await sessions.countLoginAttempt(tenAMinute("10.0.0.2"), 1000)).toBeUndefined();
  });

  test("a login attempt counts for each of its scopes, and for none if one of them refuses it", async () => {
    await using opened = await openTestEngine();
    const { sessions } = opened.store;
    const attempt = (network: string) =>
      sessions.countLoginAttempt(
        [
          { scope: network, attempts: 2 },
          { scope: "wide", attempts: 3 },
        ],
        1000,
      );
    for (const network of ["a", "a", "b"]) expect(await attempt(network)).toBeUndefined();
    expect(await attempt("a")).toEqual({ scope: "a", waitMs: 60_000 });
    expect(await attempt("b")).toEqual({ scope: "wide", waitMs: 60_000 });
    expect(await sessions.countLoginAttempt([{ scope: "b", attempts: 2 }], 1000)).toBeUndefined();
  });

  test("concurrent login attempts at two processes on one database count together", async () => {
    await using one = await openTestStore();
    await using two = await one.openAnother();
    const refused = await Promise.all(
      Array.from({ length: 24 }, (_, n) =>
        [one, two][n % 2]?.store.sessions.countLoginAttempt(tenAMinute("::1"), 5000),
      ),
    );
    expect(refused.filter((attempt) => attempt === undefined)).toHaveLength(10);
  });

  test("a clock that is set back does not lock an address out", async () => {
    await using opened = await openTestEngine();
    const { sessions } = opened.store;
    for (let n = 0; n < 10; n++) await sessions.countLoginAttempt(tenAMinute("10.0.0.1"), 900_000);
    expect(await sessions.countLoginAttempt(tenAMinute("10.0.0.1"), 100_000)).toBeUndefined();
  });
});
