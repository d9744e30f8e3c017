import { expect, test } from "bun:test";
import { shared } from "../../support/shared.ts";
import { onEachEngine } from "../../store/each-engine.ts";
import { startAdmin, type Visitor } from "../support/admin-server.ts";
import { limitNames } from "../../../src/domain/limits.ts";

onEachEngine(({ engine }) => {
  const ended: number[] = [];
  const admin = shared(() => startAdmin({ engine, endRunning: async (id) => void ended.push(id) }));
  const owner = shared(() => admin.login());
  const send = (as: Visitor, method: string, path: string, json?: unknown) => admin.send(method, path, { as, json });
  const put = (policy: object) => send(owner, "PUT", "/api/key-policy", { defaults: {}, ...policy });
  const signIn = (name = "Kim") => admin.signIn({ name, role: "member" });
  const create = (as: Visitor, fields: object = {}) => send(as, "POST", "/api/me/keys", { name: "codex", ...fields });

  test("a member makes a key of their own, renames it, switches it off and replaces its secret", async () => {
    await put({});
    const kim = await signIn();
    const made = await create(kim);
    const { id } = made.json;
    expect([made.status, made.json]).toEqual([201, expect.objectContaining({ name: "Kim: codex", is_active: true })]);
    expect(await admin.store.keys.findActive(made.json.key)).toMatchObject({ id, userId: kim.userId });
    const masked = { id, name: "Kim: codex", key: expect.stringContaining("…") };
    const list = await send(kim, "GET", "/api/me/keys");
    expect(list.json).toMatchObject({ keys: [masked], ceilings: { max_keys: 10, tokens_per_day: null } });
    // No note of operators, and nothing that it may not set.
    for (const name of ["note", "tags", "owner", "team_id", "user_id", "scope"])
      expect(made.json).not.toHaveProperty(name);
    const change = { name: "aider", is_active: false };
    expect((await send(kim, "PATCH", `/api/me/keys/${id}`, change)).json).toMatchObject({
      name: "Kim: aider",
      is_active: false,
    });
    expect(await admin.store.keys.findActive(made.json.key)).toBeUndefined();
    await send(kim, "PATCH", `/api/me/keys/${id}`, { is_active: true });
    const rotated = await send(kim, "POST", `/api/me/keys/${id}/rotate`, {});
    expect(await admin.store.keys.findActive(made.json.key)).toBeUndefined();
    expect(await admin.store.keys.findActive(rotated.json.key)).toMatchObject({ id });
    const [listed] = (await send(owner, "GET", `/api/keys?key_id=${id}`)).json;
    expect(listed).toMatchObject({ name: "Kim: aider", scope: "inference", user_id: kim.userId });
    const { rows } = (await send(owner, "GET", `/api/audit?target=key/${id}`)).json;
    expect(rows.map(({ action, actor, role }: Record<string, string>) => [action, actor, role])).toEqual(
      ["key.rotate", "key.update", "key.update", "key.create"].map((action) => [
        action,
        `Kim (user ${kim.userId})`,
        "member",
      ]),
    );
  });

  test("the key of another, and that of nobody, is one that is not there", async () => {
    const [kim, lee] = [await signIn(), await signIn("Lee")];
    const { id } = (await create(kim)).json;
    const { id: ofNobody } = (await send(owner, "POST", "/api/keys", { name: "k" })).json;
    for (const other of [id, ofNobody, 0, 999_999, "x"]) {
      for (const [method, path, json] of [
        ["PATCH", `/api/me/keys/${other}`, { is_active: false }],
        ["POST", `/api/me/keys/${other}/rotate`, {}],
      ] as const) {
        const { status, json: body } = await send(lee, method, path, json);
        expect([status, body]).toEqual([404, { error: "Key not found" }]);
      }
    }
    const seen = [await send(lee, "GET", "/api/me/keys"), await send(lee, "GET", "/api/me/usage")];
    for (const { text } of seen) expect(text).not.toContain("Kim");
    expect(seen[0]?.json.keys).toEqual([]);
  });

  test("what is left out takes the ceiling, and what is above one is refused with its name", async () => {
    const member = { max_keys: 2, tokens_per_day: 1000, priority: "low", expires_in_days: 30 };
    const policy = await put({
      defaults: { tokens_per_day: 9, max_concurrency: 4, allowed_models: ["qwen*"] },
      member,
    });
    expect(policy.json.member).toMatchObject({ ...member, max_concurrency: null });
    expect((await send(owner, "GET", "/api/key-policy")).json).toEqual(policy.json);
    const kim = await signIn();
    const ceilings = { max_keys: 2, tokens_per_day: 1000, max_concurrency: 4, expires_in_days: 30, priority: "low" };
    expect((await send(kim, "GET", "/api/me/keys")).json.ceilings).toMatchObject(ceilings);
    const inDays = (days: number) => new Date(admin.time.now + days * 86_400_000).toISOString();
    for (const [fields, error] of [
      [{ tokens_per_day: 1001 }, "tokens_per_day must be at most 1000"],
      [{ max_concurrency: 5 }, "max_concurrency must be at most 4"],
      [{ priority: "normal" }, "priority must be at most low"],
      [{ expires_at: inDays(31) }, "expires_at must be at most 30 days from now"],
      [{ allowed_models: null }, "Unknown field: allowed_models"],
      [{ scope: "all" }, "Unknown field: scope"],
      [{ name: "x".repeat(61) }, "name must be at most 60 characters"],
    ] as const) {
      const { status, json } = await create(kim, fields);
      expect([fields, status, json]).toEqual([fields, 400, { error }]);
    }
    const made = (await create(kim, { tokens_per_day: 5, max_concurrency: null })).json;
    expect(made).toMatchObject({ tokens_per_day: 5, max_concurrency: 4, priority: "low", allowed_models: ["qwen*"] });
    expect(Date.parse(made.expires_at)).toBe(Date.parse(inDays(30)));
    admin.time.now += 40 * 86_400_000;
    const again = await signIn("Later");
    expect((await create(again, { expires_at: inDays(7) })).json.expires_at).toBe(
      (await send(again, "GET", "/api/me/keys")).json.keys[0].expires_at,
    );
    const rotated = (await send(again, "POST", `/api/me/keys/${(await create(again)).json.id}/rotate`, {})).json;
    expect(Date.parse(rotated.expires_at)).toBe(Date.parse(inDays(30)));
    const tooMany = await create(again);
    expect([tooMany.status, tooMany.json]).toEqual([409, { error: "You have as many keys as you may have" }]);
  });

  test.each<[object, string]>([
    [{ member: [] }, "member must be an object"],
    [{ member: { max_keys: 0 } }, "max_keys must be an integer from 1 to 1000"],
    [{ member: { team_id: 1 } }, "Unknown field: team_id"],
    [{ member: { tokens_per_day: "1" } }, "tokens_per_day must be an integer from 1 to 1000000000000"],
  ])("a policy is not %j", async (policy, error) => {
    const { status, json } = await put(policy);
    expect([status, json]).toEqual([400, { error }]);
  });

  test("several keys at once are no more than a member may have", async () => {
    await put({ member: { max_keys: 3 } });
    const kim = await signIn();
    const made = await Promise.all(Array.from({ length: 8 }, () => create(kim)));
    expect(made.filter(({ status }) => status === 201)).toHaveLength(3);
    expect(made.filter(({ status }) => status === 409)).toHaveLength(5);
  });

  test("who is switched off has no session and no key any more, with one row of the record", async () => {
    await put({});
    const [kim, lee] = [await signIn(), await signIn("Lee")];
    const { id, key } = (await create(kim)).json;
    const { key: ofLee } = (await create(lee)).json;
    expect((await send(owner, "PATCH", `/api/users/${kim.userId}`, { is_active: false })).status).toBe(200);
    expect((await send(kim, "GET", "/api/me/keys")).status).toBe(401);
    expect((await send(kim, "GET", "/api/me")).json).toEqual({ authenticated: false });
    const holds = async (secret: string) =>
      (await admin.send("GET", "/api/own-key", { headers: { authorization: `Bearer ${secret}` } })).status;
    expect([await holds(key), await holds(ofLee)]).toEqual([401, 200]);
    expect(ended).toContain(-kim.userId);
    expect((await send(lee, "GET", "/api/me/keys")).status).toBe(200);
    const { rows } = (await send(owner, "GET", `/api/audit?target=user/${kim.userId}`)).json;
    expect(rows).toMatchObject([{ action: "user.update", after: '{"is_active":false}' }]);
    expect((await send(owner, "DELETE", `/api/users/${lee.userId}`)).status).toBe(200);
    expect((await send(lee, "GET", "/api/me/keys")).status).toBe(401);
    expect(await admin.store.keys.findActive(ofLee)).toBeUndefined();
    const [listed] = (await send(owner, "GET", `/api/keys?key_id=${id}`)).json;
    expect(listed).toMatchObject({ user_id: kim.userId });
    // Who is back has the same keys.
    await send(owner, "PATCH", `/api/users/${kim.userId}`, { is_active: true });
    expect([await holds(key), (await send(kim, "GET", "/api/me/keys")).status]).toEqual([200, 401]);
  });

  test("a member sees and ends their own sessions only, which last 12 hours whatever they do", async () => {
    const kim = await signIn();
    const start = admin.time.now;
    const lee = await signIn("Lee");
    const sessions = (await send(kim, "GET", "/api/sessions")).json;
    expect(sessions).toMatchObject([{ username: "Kim", role: "member", is_current: true, last_seen_at: null }]);
    const ofLee = (await send(lee, "GET", "/api/sessions")).json[0].id;
    expect((await send(kim, "DELETE", `/api/sessions/${ofLee}`)).status).toBe(404);
    expect((await send(kim, "DELETE", "/api/sessions")).json).toEqual({ ok: true, ended: 0 });
    expect((await send(owner, "GET", "/api/sessions")).json.length).toBeGreaterThan(2);
    admin.time.now = start + 12 * 3_600_000 - 60_000;
    const me = await send(kim, "GET", "/api/me");
    expect(me.json).toEqual({ authenticated: true, username: "Kim", csrf_token: kim.csrf });
    expect([me.headers.get("x-tollgate-role"), me.headers.getSetCookie()[0]]).toEqual([
      "member",
      expect.stringContaining("Max-Age=60;"),
    ]);
    admin.time.now += 60_001;
    expect((await send(kim, "GET", "/api/me")).status).toBe(401);
    expect((await send(owner, "GET", "/api/me")).headers.get("x-tollgate-role")).toBeNull();
  });

  test("metrics, alerts and the objects of states are not for members", async () => {
    const [kim, viewer] = [await signIn(), await admin.signIn({ name: "V", role: "viewer" })];
    for (const path of ["/metrics", "/alerts.yaml", "/grafana.json"]) {
      expect([path, (await send(kim, "GET", path)).status, (await send(viewer, "GET", path)).status]).toEqual([
        path,
        401,
        200,
      ]);
    }
  });

  test("usage is that of the user and its team, without names of others", async () => {
    const team = (await send(owner, "POST", "/api/teams", { name: "ml", tokens_per_day: 1000 })).json.id as number;
    const kim = await admin.signIn({ name: "Kim", role: "member", teamId: team });
    await send(owner, "PATCH", `/api/users/${kim.userId}`, { tokens_per_day: 50 });
    const usage = (await send(kim, "GET", "/api/me/usage")).json;
    const none = { request_count: 0, input_tokens: 0, output_tokens: 0, total_tokens: 0, estimated_tokens: 0 };
    expect(usage).toMatchObject({ name: "Kim", today: none, this_month: none, daily: [] });
    expect(usage.team).toMatchObject({ name: "ml", tokens_per_day: 1000, today: none });
    expect(limitNames.filter((name) => usage.limit_states[name] !== undefined)).toHaveLength(1);
  });
});
