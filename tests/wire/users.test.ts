import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { pollUntil } from "../support/poll-until.ts";
import { type EngineName, whyNoPostgres } from "../support/postgres.ts";
import { tokenOf } from "../support/user-token.ts";
import { chat, errorOf, startTollgateWithKeys, type TollgateWithKeys } from "../support/tollgate-with-keys.ts";

interface User {
  id: number;
  name: string;
  source: string;
  external: string;
  used: Readonly<Record<string, number | null>>;
}

const secret = "0123456789abcdef0123456789abcdef";
const jwt = (claims: object, key = secret, head?: object): Record<string, string> => ({
  "x-openwebui-user-jwt": tokenOf(claims, key, head),
});

const engines = (["SQLite", "PostgreSQL"] as const).filter((name) => name === "SQLite" || whyNoPostgres === undefined);

test("of three users on two places, one of whom floods, the two others get the next that become free", async () => {
  await using gate = await startTollgateWithKeys({ PROXY_MAX_CONCURRENCY: "2", PROXY_QUEUE_TIMEOUT: "20" });
  const { key } = await gate.createKey({ users_from: "header:x-user" });
  const order: string[] = [];
  const post = async (user: string): Promise<void> => {
    const sent = { key, script: "slow-head=100ms", headers: { "x-user": user } };
    await (await gate.send("/v1/chat/completions", chat, sent)).text();
    order.push(user);
  };
  const flood = Array.from({ length: 20 }, () => post("flood"));
  await pollUntil(() => order.length > 0);
  await Promise.all([post("a"), post("b")]);
  // Those that had ended or run when these came, and what ran beside them.
  expect(order.indexOf("a")).toBeLessThan(8);
  expect(order.indexOf("b")).toBeLessThan(8);
  await Promise.all(flood);
});

describe.each<EngineName>(engines)("users behind a key on %s", (engine) => {
  let gate: TollgateWithKeys;
  beforeAll(async () => {
    gate = await startTollgateWithKeys({ CONTACT: "Ask ops.", PROXY_QUEUE_TIMEOUT: "20" }, { engine });
  });
  afterAll(() => gate[Symbol.asyncDispose]());

  const post = (
    key: string,
    headers: Record<string, string> = {},
    {
      body = chat,
      script = "usage=3,4",
      method = "POST",
      path = "/v1/chat/completions",
    }: { body?: object; script?: string; method?: string; path?: string } = {},
  ): Promise<Response> => gate.send(path, method === "POST" ? body : undefined, { key, script, headers });
  const sentHeaders = (): string[] =>
    (gate.backend.requests().at(-1)?.headers ?? []).map(([name]) => name.toLowerCase());
  const statusOf = async (response: Promise<Response>): Promise<number> => {
    const { status, ...one } = await response.then(async (got) => ({ status: got.status, text: await got.text() }));
    return one.text === "" ? 0 : status;
  };
  const usersOf = async (id: number): Promise<User[]> =>
    (await gate.admin.expectOk<{ users: User[] }>("GET", `/api/users?key=${id}`)).users;
  const namesOf = async (id: number): Promise<string[][]> =>
    (await usersOf(id)).map(({ name, external }) => [name, external]);

  test("are told by the headers of a front end, which no backend gets, and by nothing else", async () => {
    const { id, key } = await gate.createKey({ users_from: "open-webui" });
    const kim = {
      "x-openwebui-user-id": "a-1",
      "x-openwebui-user-name": "Kim%20L%C3%A9",
      "x-openwebui-user-email": "k@x",
    };
    expect(await statusOf(post(key, { ...kim, X_OpenWebUI_User_Role: "admin", "x-openwebui-chat-id": "c" }))).toBe(200);
    expect(sentHeaders().filter((name) => name.includes("openwebui"))).toEqual(["x-openwebui-chat-id"]);
    expect(await statusOf(post(key, { "x-openwebui-user-id": "b-2", "x-openwebui-user-email": "b@x" }))).toBe(200);
    // A list of models, and what is sent for nobody in particular.
    expect(await statusOf(post(key, { "x-openwebui-user-id": "c-3" }, { method: "GET", path: "/v1/models" }))).toBe(
      200,
    );
    expect(await statusOf(post(key))).toBe(200);
    expect(await statusOf(post(key, { "x-openwebui-user-email": "d@x", "x-user": "e" }))).toBe(200);
    expect(await namesOf(id)).toEqual([
      ["Kim Lé", "a-1"],
      ["b@x", "b-2"],
    ]);
    // Another name is taken over, but not over one that an operator gave.
    await gate.admin.expectOk("PATCH", `/api/users/${(await usersOf(id))[1]?.id}`, { name: "Bo" });
    await pollUntil(async () => {
      await post(key, { ...kim, "x-openwebui-user-name": "Kim P" });
      await post(key, { "x-openwebui-user-id": "b-2", "x-openwebui-user-name": "Robert" });
      return (await namesOf(id))[0]?.[0] === "Kim P";
    });
    expect((await namesOf(id))[1]).toEqual(["Bo", "b-2"]);
  });

  test("a key of somebody's own counts for its user and the user's team, whatever it sends, and ends with the user", async () => {
    const team = await gate.admin.expectOk<{ id: number }>("POST", "/api/teams", { name: `of ${engine}` });
    const kim = await gate.signIn({ name: "Kim", role: "member", teamId: team.id });
    const own = await kim.expectOk<{ id: number; key: string }>("POST", "/api/me/keys", { name: "codex" });
    const second = await kim.expectOk<{ key: string }>("POST", "/api/me/keys", { name: "aider" });
    expect(await statusOf(post(own.key, {}, { script: "usage=3,4" }))).toBe(200);
    // Nor does a key that is told to tell users apart.
    await gate.admin.updateKey(own.id, { users_from: "body" });
    const body = { ...chat, user: "lee" };
    expect(await statusOf(post(own.key, {}, { script: "usage=10,20", body }))).toBe(200);
    expect(await statusOf(post(second.key, {}, { script: "usage=100,200" }))).toBe(200);
    const total = { request_count: 3, input_tokens: 113, output_tokens: 224 };
    await pollUntil(async () => {
      const usage = await kim.expectOk<{ today: object; team: object }>("GET", "/api/me/usage");
      return Bun.deepMatch({ today: total, team: { name: `of ${engine}`, today: total } }, usage);
    });
    const costs = await gate.admin.expectOk<{ rows: object[] }>("GET", `/api/usage/costs?by=user&team_id=${team.id}`);
    expect(costs.rows).toMatchObject([{ user_id: kim.userId, request_count: 3 }]);
    const holder = await gate.send("/v1/tollgate/key", undefined, { key: own.key });
    expect(await holder.json()).toMatchObject({ name: "Kim: codex", team: { name: `of ${engine}` } });

    await gate.admin.expectOk("PATCH", `/api/users/${kim.userId}`, { tokens_per_day: 100 });
    await pollUntil(async () => (await statusOf(post(second.key))) === 402);
    await gate.admin.expectOk("PATCH", `/api/users/${kim.userId}`, { tokens_per_day: null });
    await pollUntil(async () => (await statusOf(post(second.key))) === 200);

    const running = await post(own.key, {}, { body: { ...chat, stream: true }, script: "gap=forever@2" });
    await gate.admin.expectOk("PATCH", `/api/users/${kim.userId}`, { is_active: false });
    expect((await kim.request("GET", "/api/me/keys")).status).toBe(401);
    expect([await statusOf(post(own.key)), await statusOf(post(second.key))]).toEqual([403, 403]);
    // It ends.
    await running.text().catch(() => "cut");
    expect(await errorOf(await post(own.key))).toMatchObject({ code: "user_inactive" });
  });

  test("get more of a limit of their own until its window ends", async () => {
    const { id, key } = await gate.createKey({ users_from: "open-webui" });
    const use = (): Promise<number> => statusOf(post(key, { "x-openwebui-user-id": "a-1" }, { script: "usage=30,30" }));
    expect(await use()).toBe(200);
    const path = `/api/users/${(await usersOf(id))[0]?.id}`;
    await gate.admin.expectOk("PATCH", path, { tokens_per_month: 50 });
    await pollUntil(async () => (await use()) === 402);
    const extra = { limits_extra: { tokens_per_month: 1_000_000 } };
    expect(await gate.admin.expectOk("PATCH", path, extra)).toMatchObject({ tokens_per_month: 50, ...extra });
    await pollUntil(async () => (await use()) === 200);
  });

  test("of a signed front end are those of its tokens; a forged one is refused wherever it comes, and makes none", async () => {
    const { id, key } = await gate.createKey({ users_from: "open-webui", users_secret: secret });
    expect(await statusOf(post(key, { ...jwt({ sub: "a-1", name: "Kim" }), "x-openwebui-user-id": "z" }))).toBe(200);
    expect(await statusOf(post(key, { "x-openwebui-user-id": "z" }))).toBe(200);
    const past = Math.floor(Date.now() / 1000);
    expect(await statusOf(post(key, jwt({ sub: "b-2", exp: past - 30 })))).toBe(200);
    for (const headers of [
      jwt({ sub: "f" }, secret.replace("0", "1")),
      jwt({ sub: "f" }, secret, { alg: "none", typ: "JWT" }),
      jwt({ sub: "f" }, secret, { alg: "HS384", typ: "JWT" }),
      jwt({ sub: "f", iss: "other" }),
      jwt({ sub: "f", exp: past - 61 }),
      jwt({ sub: "f", exp: String(past + 60) }),
      jwt({ sub: "" }),
      jwt({}),
      { "x-openwebui-user-jwt": "" },
      { "x-openwebui-user-jwt": `${tokenOf({ sub: "f" }, secret)}.x` },
      { "x-openwebui-user-jwt": tokenOf({ sub: "f" }, secret).replace(/\.[^.]*$/, ".") },
    ]) {
      for (const method of ["POST", "GET"]) {
        const refused = await post(key, headers, {
          method,
          path: method === "GET" ? "/v1/models" : "/v1/chat/completions",
        });
        expect(await errorOf(refused)).toMatchObject({ status: 401, code: "invalid_user_token" });
      }
    }
    expect(await namesOf(id)).toEqual([
      ["Kim", "a-1"],
      ["b-2", "b-2"],
    ]);
    // Both secrets are accepted while the front end gets the new one.
    const next = secret.replaceAll("a", "z");
    await gate.admin.expectOk("PATCH", `/api/keys/${id}`, { users_secret: next });
    expect(await statusOf(post(key, jwt({ sub: "a-1" })))).toBe(200);
    expect(await statusOf(post(key, jwt({ sub: "a-1" }, next)))).toBe(200);
  });

  test("are shared by the keys that name one signed source, and by no others", async () => {
    const fields = { users_from: "open-webui@prod", users_secret: secret };
    const [one, other] = [await gate.createKey(fields), await gate.createKey(fields)];
    const alone = await gate.createKey({ users_from: "open-webui", users_secret: secret });
    for (const { key } of [one, other, alone]) expect(await statusOf(post(key, jwt({ sub: "s-1" })))).toBe(200);
    expect((await usersOf(one.id)).map(({ source }) => source)).toEqual(["open-webui@prod"]);
    expect(await usersOf(other.id)).toEqual([]);
    expect((await usersOf(alone.id)).map(({ source }) => source)).toEqual([`key:${alone.id}`]);
  });

  test("come from a header of another front end, or from the body", async () => {
    const header = await gate.createKey({ users_from: "header:x-user" });
    expect(await statusOf(post(header.key, { "X-User": "h-1" }))).toBe(200);
    expect(sentHeaders()).not.toContain("x-user");
    expect(await namesOf(header.id)).toEqual([["h-1", "h-1"]]);
    const body = await gate.createKey({ users_from: "body", user_limits: { tokens_per_day: 100 } });
    for (const [more, status] of [
      [{ user: "b-1" }, 200],
      [{ user: "b-1", safety_identifier: "b-2" }, 200],
      [{ user: 5, metadata: { user_id: "device" } }, 200],
      [{ user: "b\0-3" }, 200],
    ] as const) {
      expect(await statusOf(post(body.key, {}, { body: { ...chat, ...more } }))).toBe(status);
    }
    expect(gate.backend.requests().at(-4)?.json()).toMatchObject({ user: "b-1" });
    expect((await namesOf(body.id)).map(([name]) => name)).toEqual(["b-1", "b-2", "b\ufffd-3"]);
    const sent = { key: body.key, headers: { "content-type": "text/plain" } };
    const form = await gate.send("/v1/chat/completions", "user=b-4", sent);
    expect(await errorOf(form)).toMatchObject({ status: 415, code: "unsupported_body" });
  });

  test("beyond as many as the key may have, or with an id that is too long, are one", async () => {
    const { id, key } = await gate.createKey({
      users_from: "header:x-user",
      users_max: 2,
      user_limits: { tokens_per_day: 20 },
    });
    for (const user of ["a", "b", "c", "d", "x".repeat(257)])
      expect(await statusOf(post(key, { "x-user": user }))).toBe(200);
    expect(await namesOf(id)).toEqual([
      ["a", "a"],
      ["b", "b"],
      ["other", ""],
    ]);
    const { rows } = await gate.admin.expectOk<{ rows: { user_name: string; request_count: number }[] }>(
      "GET",
      `/api/usage/costs?by=user&key_id=${id}`,
    );
    expect(rows.map((row) => [row.user_name, row.request_count])).toEqual([
      ["a", 1],
      ["b", 1],
      ["other", 3],
    ]);
  });

  test("may be required, or switched off, which ends what runs and names no key", async () => {
    const { id, key } = await gate.createKey({ users_from: "header:x-user", users_required: true });
    expect(await errorOf(await post(key))).toMatchObject({ status: 401, code: "user_required" });
    expect(await statusOf(post(key, {}, { method: "GET", path: "/v1/models" }))).toBe(200);
    const running = await post(key, { "x-user": "a" }, { body: { ...chat, stream: true }, script: "gap=forever@2" });
    const others = await post(key, { "x-user": "b" }, { body: { ...chat, stream: true }, script: "gap=forever@2" });
    const [user] = await usersOf(id);
    await gate.admin.expectOk("PATCH", `/api/users/${user?.id}`, { is_active: false });
    // Its end comes without a response, or with an event.
    const text = await running.text().catch(() => "cut");
    expect(text).toMatch(/user_inactive|cut/);
    const refused = await errorOf(await post(key, { "x-user": "a" }));
    expect(refused).toMatchObject({
      status: 403,
      code: "user_inactive",
      message: "You may not send requests at present. Ask ops.",
    });
    expect(await statusOf(post(key, { "x-user": "b" }))).toBe(200);
    const stillRuns = await Promise.race([others.text().then(() => false), Bun.sleep(100).then(() => true)]);
    expect(stillRuns).toBe(true);
    for (const one of await gate.admin.listRunning()) await gate.admin.endRunning(one.id);
  });

  test("have their own limits, or those that their key gives each, beside those of the key and a team", async () => {
    const team = await gate.admin.expectOk<{ id: number }>("POST", "/api/teams", {
      name: `of users ${engine}`,
      tokens_per_day: 1000,
    });
    const { id, key } = await gate.createKey({
      users_from: "header:x-user",
      user_limits: { tokens_per_day: 50 },
      tokens_per_month: 1_000_000,
    });
    await gate.admin.expectOk("POST", "/api/users", {
      key_id: id,
      external: "vip",
      team_id: team.id,
      tokens_per_day: 500,
    });
    const use = (user: string): Promise<Response> => post(key, { "x-user": user }, { script: "usage=30,30" });
    expect(await statusOf(use("a"))).toBe(200);
    const refused = await use("a");
    expect(refused.headers.get("x-ratelimit-remaining-tokens")).toBe("0");
    expect(await errorOf(refused)).toMatchObject({
      status: 402,
      code: "insufficient_quota",
      param: "tokens_per_day",
      message: "You are limited to 50 tokens per day; it is free again at midnight, Seoul. Ask ops.",
    });
    expect(await statusOf(use("b"))).toBe(200);
    for (let sent = 0; sent < 3; sent++) expect(await statusOf(use("vip"))).toBe(200);
    const vip = (await usersOf(id)).find(({ external }) => external === "vip");
    const usedOf = async (path: string) => (await gate.admin.expectOk<User>("GET", path)).used["tokens_per_day"];
    await pollUntil(async () => (await usedOf(`/api/users/${vip?.id}`)) === 180);
    await pollUntil(async () => (await usedOf(`/api/teams/${team.id}`)) === 180);
    await pollUntil(async () => (await gate.getKey(id)).used["tokens_per_month"] === 300);
    // What each used is all that the key used, and what the team used is what its user did.
    type Rows = { rows: Readonly<Record<string, number | string>>[] };
    const rowsBy = async (query: string, ...names: string[]) => {
      const { rows } = await gate.admin.expectOk<Rows>("GET", `/api/usage/costs?${query}`);
      return rows.map((row) => names.map((name) => row[name]));
    };
    expect(await rowsBy(`by=user&key_id=${id}`, "user_name", "input_tokens")).toEqual([
      ["vip", 90],
      ["a", 30],
      ["b", 30],
    ]);
    expect(await rowsBy(`by=team&key_id=${id}`, "team_id", "input_tokens")).toEqual([
      [0, 60],
      [team.id, 90],
    ]);
    expect(await rowsBy(`by=model&user_id=${vip?.id}`, "model", "input_tokens")).toEqual([["m", 90]]);
    expect(await rowsBy(`by=key&key_id=${id}&user_id=0`, "input_tokens")).toEqual([]);
    const logged = await gate.admin.listRequests(`?user_id=${vip?.id}`);
    expect(logged.map((one) => one.user_name)).toEqual(["vip", "vip", "vip"]);
    const groups = await gate.admin.expectOk<{ rows: { name: string; id: number; request_count: number }[] }>(
      "GET",
      `/api/requests/groups?by=user&key_id=${id}`,
    );
    expect(
      groups.rows
        .map(({ name, request_count: count }) => [name, count])
        .toSorted((a, b) => String(a).localeCompare(String(b))),
    ).toEqual([
      ["a", 2],
      ["b", 1],
      ["vip", 3],
    ]);
  });

  test("share a key's places: one that floods it waits for its own, and the others do not wait for it", async () => {
    const { key } = await gate.createKey({ users_from: "header:x-user", user_limits: { max_concurrency: 1 } });
    const flood = Array.from({ length: 10 }, () =>
      post(key, { "x-user": "flood" }, { script: "slow-head=100ms; usage=1,1" }),
    );
    let ended = 0;
    for (const one of flood) void one.then(() => (ended += 1));
    await Promise.race(flood);
    const began = ended;
    for (const user of ["a", "b"]) expect(await statusOf(post(key, { "x-user": user }))).toBe(200);
    expect(ended - began).toBeLessThan(5);
    for (const one of flood) expect(await statusOf(one)).toBe(200);
  });
});
