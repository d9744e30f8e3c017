import { expect, test } from "bun:test";
import { shared } from "../../support/shared.ts";
import { onEachEngine } from "../../store/each-engine.ts";
import { startAdmin, type TestResponse } from "../support/admin-server.ts";

onEachEngine(({ engine }) => {
  const admin = shared(() => startAdmin({ engine }));
  const owner = shared(() => admin.login());
  const send = (method: string, path: string, json?: unknown) => admin.send(method, path, { as: owner, json });
  const createKey = async (fields: object = {}): Promise<number> =>
    (await send("POST", "/api/keys", { name: "k", users_from: "open-webui", ...fields })).json.id;
  const createUser = async (fields: object): Promise<TestResponse["json"]> =>
    (await send("POST", "/api/users", fields)).json;
  const see = (keyId: number, external: string, more: object = {}) =>
    admin.store.subjects.see({ keyId, source: `key:${keyId}`, external, name: undefined, max: 3, ...more });

  test("a user is made before its first request, listed, changed, and deleted", async () => {
    const keyId = await createKey();
    const team = (await send("POST", "/api/teams", { name: `of ${keyId}` })).json.id;
    const fields = { name: "Kim", team_id: team, tokens_per_day: 1000, note: "n", tags: ["t"] };
    const made = await send("POST", "/api/users", { key_id: keyId, external: "a-1", ...fields });
    const { id } = made.json;
    const user = { ...fields, source: `key:${keyId}`, external: "a-1", key_id: keyId, is_active: true, same_as: null };
    expect([made.status, made.json]).toEqual([201, expect.objectContaining({ ...user, last_seen_at: null })]);
    expect((await send("GET", `/api/users/${id}`)).json).toEqual(made.json);
    const again = await send("POST", "/api/users", { key_id: keyId, external: "a-1" });
    expect([again.status, again.json]).toEqual([409, { error: "This user already exists" }]);
    const change = { name: "Kim Lee", team_id: null, is_active: false, tokens_per_day: null, max_concurrency: 4 };
    expect((await send("PATCH", `/api/users/${id}`, change)).json).toMatchObject({ ...user, ...change });
    expect(await see(keyId, "a-1")).toMatchObject({ id, isActive: false, limits: { max_concurrency: 4 } });
    expect((await send("DELETE", `/api/users/${id}`)).json).toEqual({ ok: true });
    expect((await send("GET", `/api/users/${id}`)).status).toBe(404);
    expect(await admin.store.requests.keyNames([-id])).toEqual([[-id, "Kim Lee"]]);
  });

  test("a user that is forgotten leaves no name, in the record of changes neither", async () => {
    const keyId = await createKey();
    const { id } = await createUser({ key_id: keyId, external: "secret-id", name: "Secret Name" });
    await send("PATCH", `/api/users/${id}`, { name: "Secret Name 2" });
    expect((await send("DELETE", `/api/users/${id}?forget=true`)).json).toEqual({ ok: true });
    expect(await admin.store.requests.keyNames([-id])).toEqual([[-id, `user ${id}`]]);
    expect(JSON.stringify((await send("GET", "/api/audit")).json)).not.toContain("ecret");
  });

  test("users come in pages, by key, by team and by what they are called", async () => {
    const keyId = await createKey();
    const team = (await send("POST", "/api/teams", { name: `pages of ${keyId}` })).json.id;
    const ids: number[] = [];
    for (const name of ["Ann 100%", "Bo", "Cy"])
      ids.push(
        (await createUser({ key_id: keyId, external: `${name}@x`, name, ...(name === "Bo" && { team_id: team }) })).id,
      );
    const list = async (query: string) => {
      const { users, next_cursor: next } = (await send("GET", `/api/users?${query}`)).json;
      return [users.map((one: { id: number }) => one.id), next];
    };
    expect(await list(`key=${keyId}`)).toEqual([ids, null]);
    expect(await list(`key=${keyId}&limit=2`)).toEqual([ids.slice(0, 2), String(ids[1])]);
    expect(await list(`key=${keyId}&limit=2&cursor=${ids[1]}`)).toEqual([ids.slice(2), null]);
    expect(await list(`team=${team}`)).toEqual([[ids[1]], null]);
    expect(await list(`key=${keyId}&q=NN 100%25`)).toEqual([[ids[0]], null]);
    expect(await list(`key=${keyId}&q=n_1`)).toEqual([[], null]);
    for (const query of ["key=0", "team=x", "cursor=x", "limit=0"]) {
      expect((await send("GET", `/api/users?${query}`)).status).toBe(400);
    }
  });

  test("what names nobody, a team or a key that is not there, or is misspelt, is refused", async () => {
    const keyId = await createKey();
    const { id } = await createUser({ source: "open-webui@prod", external: "x" });
    const other = await createUser({ source: "open-webui@prod", external: "y" });
    for (const [method, path, json, error] of [
      ["POST", "", { external: "z" }, "Either key_id or source is required"],
      ["POST", "", { external: "z", key_id: keyId, source: "open-webui@prod" }, "Either key_id or source is required"],
      ["POST", "", { external: "z", key_id: 999_999 }, "key_id must be the id of a key"],
      ["POST", "", { external: "z", source: "prod" }, "source must be such as open-webui@NAME"],
      ["POST", "", { external: "", key_id: keyId }, "external must not be empty"],
      ["POST", "", { external: "z", key_id: keyId, tokens_per_dya: 1 }, "Unknown field: tokens_per_dya"],
      ["PATCH", `/${id}`, { team_id: 999_999 }, "team_id must be the id of a team"],
      ["PATCH", `/${id}`, { external: "new" }, "Unknown field: external"],
      ["PATCH", `/${id}`, { same_as: id }, "same_as must be the id of another user, which is itself linked to none"],
    ] as const) {
      const { status, json: body } = await send(method, `/api/users${path}`, json);
      expect([status, body]).toEqual([400, { error }]);
    }
    expect((await send("PATCH", `/api/users/${id}`, { same_as: other.id })).json.same_as).toBe(other.id);
    expect((await send("PATCH", `/api/users/${other.id}`, { same_as: id })).status).toBe(400);
    expect(await see(keyId, "x", { source: "open-webui@prod" })).toMatchObject({ id: other.id });
    await send("DELETE", `/api/users/${other.id}`);
    expect(await see(keyId, "x", { source: "open-webui@prod" })).toMatchObject({ id });
  });

  test("one whom a client names without a signature is not linked to one who signs in", async () => {
    const identity = { source: "https://id.example", external: crypto.randomUUID() };
    const signIn = { ...identity, name: "Kim", groups: [], newTeam: null, refreshToken: null };
    const person = await admin.store.signIns.begin(signIn);
    const unsigned = await createUser({ key_id: await createKey(), external: "u" });
    const signed = await createUser({ key_id: await createKey({ users_secret: "s".repeat(32) }), external: "u" });
    const link = { same_as: person?.id };
    expect(await send("PATCH", `/api/users/${unsigned.id}`, link)).toMatchObject({
      status: 409,
      json: { error: "A user without a signed identity cannot be one who signs in" },
    });
    expect((await send("PATCH", `/api/users/${signed.id}`, link)).json.same_as).toBe(person?.id);
  });

  test("the first beyond as many as a key may have is the user other, until one is forgotten", async () => {
    const keyId = await createKey();
    const [first, second, , beyond, more] = [
      await see(keyId, "a", { name: "A" }),
      await see(keyId, "b"),
      await see(keyId, "c"),
      await see(keyId, "d"),
      await see(keyId, ""),
    ];
    expect(beyond).toEqual(more ?? beyond);
    const { users } = (await send("GET", `/api/users?key=${keyId}`)).json;
    expect(users.map((one: { name: string; external: string }) => [one.name, one.external])).toEqual([
      ["A", "a"],
      ["b", "b"],
      ["c", "c"],
      ["other", ""],
    ]);
    expect(beyond.limits).toMatchObject({ tokens_per_day: null });
    expect(first.limits).toBeUndefined();
    // One that an operator knows stays.
    await send("PATCH", `/api/users/${first.id}`, { name: "Ann" });
    admin.time.now += 91 * 86_400_000;
    Object.assign(owner, await admin.login());
    const latest = await see(keyId, "d");
    expect(latest.id).not.toBe(beyond.id);
    expect((await send("GET", `/api/users/${first.id}`)).json.name).toBe("Ann");
    expect((await send("GET", `/api/users/${second.id}`)).status).toBe(404);
  });

  test("the users of a deleted key are gone with it, and keep their last names", async () => {
    const keyId = await createKey();
    const { id } = await see(keyId, "a", { name: "Kim" });
    await send("DELETE", `/api/keys/${keyId}`);
    expect((await send("GET", `/api/users/${id}`)).status).toBe(404);
    expect(await admin.store.requests.keyNames([-id])).toEqual([[-id, "Kim"]]);
  });

  test("keys, teams and users say whether notices tell of their limits", async () => {
    const { json: key } = await send("POST", "/api/keys", { name: "with a user", notify: true });
    expect(key.notify).toBe(true);
    const { json: team } = await send("POST", "/api/teams", { name: "t" });
    expect(team.notify).toBe(false);
    const { json: user } = await send("POST", "/api/users", { key_id: key.id, external: "u", notify: true });
    expect(user.notify).toBe(true);
    expect(await admin.store.subjects.countUsers()).toContainEqual({ key: "with a user", users: 1, max: 1000 });
    for (const [path, notify] of [
      [`/api/keys/${key.id}`, null],
      [`/api/teams/${team.id}`, true],
      [`/api/users/${user.id}`, false],
    ] as const) {
      expect((await send("PATCH", path, { notify })).json.notify).toBe(notify === true);
      expect((await send("PATCH", path, { tokens_per_day: 5 })).json.notify).toBe(notify === true);
      expect((await send("PATCH", path, { notify: 1 })).json).toEqual({ error: "notify must be a boolean" });
    }
  });

  test("how a key tells users apart is set with it; its secret is never shown", async () => {
    const secret = "0123456789abcdef0123456789abcdef";
    const fields = {
      users_from: "open-webui@prod",
      user_limits: { max_concurrency: 4 },
      users_max: 80,
      users_required: true,
    };
    const { json: key } = await send("POST", "/api/keys", { name: "k", ...fields, users_secret: secret });
    expect(key).toMatchObject({
      ...fields,
      user_limits: { max_concurrency: 4, tokens_per_day: null },
      has_users_secret: true,
    });
    expect(JSON.stringify([key, (await send("GET", "/api/audit")).json])).not.toContain(secret);
    const secretsOf = async () => (await admin.store.keys.findActive(key.key))?.rules?.users_secrets;
    const next = secret.replaceAll("a", "b");
    await send("PATCH", `/api/keys/${key.id}`, { users_secret: next });
    expect(await secretsOf()).toEqual([next, secret]);
    await send("PATCH", `/api/keys/${key.id}`, { users_secret: secret.replaceAll("a", "c") });
    expect(await secretsOf()).toEqual([secret.replaceAll("a", "c"), next]);
    const none = { users_from: null, users_secret: null, user_limits: null, users_max: null, users_required: null };
    const { json: cleared } = await send("PATCH", `/api/keys/${key.id}`, none);
    expect(cleared).toMatchObject({ users_from: null, has_users_secret: false, users_required: false });
    expect((await admin.store.keys.findActive(key.key))?.rules).toBeNull();
    for (const [wrong, error] of [
      [{ users_from: "header:Authorization" }, /^users_from must be/],
      [{ users_from: "header:authorization" }, /^users_from must be/],
      [{ users_from: "header:x user" }, /^users_from must be/],
      [{ users_from: "oidc" }, /^users_from must be/],
      [{ users_from: "open-webui@prod" }, /requires users_secret$/],
      [{ users_secret: "short" }, /^users_secret must have 32/],
      [{ user_limits: { tokens_per_dya: 1 } }, /^user_limits must be an object of/],
      [{ user_limits: { tokens_per_day: 0 } }, /^tokens_per_day must be an integer/],
      [{ users_max: 20_001 }, /^users_max must be/],
    ] as const) {
      const { status, json } = await send("PATCH", `/api/keys/${key.id}`, wrong);
      expect([status, json]).toEqual([400, { error: expect.stringMatching(error) }]);
    }
  });
});
