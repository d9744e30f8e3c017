import { expect, test } from "bun:test";
import { onEachEngine } from "../each-engine.ts";

const session = { csrfToken: "token", username: "admin", expiresAt: 10_000 };

onEachEngine(({ openTestEngine }) => {
  test("none is of a user who is switched off or deleted, though it begins afterwards", async () => {
    await using opened = await openTestEngine();
    const { sessions, subjects } = opened.store;
    const wasFound: boolean[] = [];
    for (const end of [
      async () => {},
      (id: number) => subjects.update("user", id, { isActive: false }),
      (id: number) => subjects.delete("user", id, false),
    ]) {
      const identity = { source: "https://id.example", external: crypto.randomUUID() };
      const user = await subjects.create("user", { name: "Kim", ...identity, createdAt: 1 });
      if (typeof user === "string") throw new Error(user);
      await end(user.id);
      await sessions.create(`of ${user.id}`, { ...session, userId: user.id, role: "member", providerSid: null });
      wasFound.push((await sessions.find(`of ${user.id}`, 0)) !== undefined);
    }
    expect(wasFound).toEqual([true, false, false]);
  });

  const tenAMinute = (scope: string) => [{ scope, attempts: 10 }];

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

  test("a clock that is set back does not lock an address out", async () => {
    await using opened = await openTestEngine();
    const { sessions } = opened.store;
    for (let n = 0; n < 10; n++) await sessions.countLoginAttempt(tenAMinute("10.0.0.1"), 900_000);
    expect(await sessions.countLoginAttempt(tenAMinute("10.0.0.1"), 100_000)).toBeUndefined();
  });
});
