import { beforeAll, expect, test } from "bun:test";
import { shared } from "../support/shared.ts";
import { password } from "../support/admin-client.ts";
import { onEachEngine } from "../store/each-engine.ts";
import { type Admin, startAdmin } from "./support/admin-server.ts";

const headers = { "x-forwarded-for": "203.0.113.7", "x-request-id": "req-1" };

interface Row {
  id: number;
  action: string;
  target: string;
  before: string | null;
  after: string | null;
}

onEachEngine(({ engine }) => {
  let token: string;
  const admin: Admin = shared(() =>
    startAdmin({
      facts: () => ({ disk: { freeBytes: 0, sizeBytes: 1 } }),
      engine,
      trustedHops: 1,
      setDraining: (backend, drains, change) => {
        const { backends } = admin.store;
        const row = { backend, since: 0, username: "admin" };
        return drains ? backends.drain(row, change) : backends.undrain(backend, change);
      },
    }),
  );
  const owner = shared(() => admin.login());
  beforeAll(async () => {
    const created = await admin.send("POST", "/api/tokens", { as: owner, json: { name: "ci", role: "admin" } });
    ({ token } = created.json);
  });

  const read = async (query = ""): Promise<Row[]> =>
    (await admin.send("GET", `/api/audit${query}`, { as: owner })).json.rows;
  /** @returns the rows that came meanwhile, oldest first */
  async function rowsBy(act: () => Promise<unknown>): Promise<Row[]> {
    const last = (await read())[0]?.id ?? 0;
    await act();
    return (await read()).filter(({ id }) => id > last).toReversed();
  }
  const send = (method: string, path: string, json?: unknown, more: Record<string, string> = {}) =>
    admin.send(method, path, { as: owner, headers: { ...headers, ...more }, json });
  const routes = () => admin.routes as readonly { method: string; path: string; handler: { action?: string } }[];
  const declared = () => routes().filter(({ handler }) => handler.action !== undefined);
  const by = { actor: "admin (password)", role: "admin", address: "203.0.113.7", request_id: "req-1", change_id: null };

  test("a key's life is recorded with who, from where, and what changed, without its secret", async () => {
    const secret = "sk-a-secret-that-nobody-may-read";
    const json = { name: "first", key: secret, requests_per_minute: 60 };
    let id = 0;
    const rows = await rowsBy(async () => {
      ({ id } = (await send("POST", "/api/keys", json)).json);
      await send("PATCH", `/api/keys/${id}`, { is_active: false, requests_per_minute: null });
      await send("POST", `/api/keys/${id}/rotate`, {});
      await send("DELETE", `/api/keys/${id}`);
    });
    const target = `key/${id}`;
    expect(rows).toMatchObject([
      { ...by, action: "key.create", target, before: null },
      {
        ...by,
        action: "key.update",
        target,
        before: '{"is_active":true,"requests_per_minute":60}',
        after: '{"is_active":false}',
      },
      { ...by, action: "key.rotate", target, before: '{"key":"sk-a…read"}' },
      { ...by, action: "key.delete", target, after: null },
    ]);
    expect(JSON.parse(rows[0]?.after ?? "")).toMatchObject({
      key: "sk-a…read",
      name: "first",
      requests_per_minute: 60,
    });
    expect(JSON.stringify(rows)).not.toContain(secret);
  });

  test("what is refused, or changes nothing, leaves no row", async () => {
    const { id } = (await send("POST", "/api/keys", { name: "same", key: "sk-the-same-key-again" })).json;
    const rows = await rowsBy(async () => {
      expect((await send("POST", "/api/keys", { name: "" })).status).toBe(400);
      expect((await send("POST", "/api/keys", { name: "same", key: "sk-the-same-key-again" })).status).toBe(409);
      expect((await send("PATCH", "/api/keys/999", { name: "a" })).status).toBe(404);
      expect((await send("DELETE", "/api/keys/999")).status).toBe(404);
      expect((await send("PATCH", `/api/keys/${id}`, { name: "same" })).status).toBe(200);
      expect((await send("DELETE", "/api/tokens/999")).status).toBe(404);
      expect((await send("POST", "/api/explain", { path: "/v1/x", body: "" })).status).toBe(200);
    });
    expect(rows).toEqual([]);
  });

  test("a token's changes have its name, and those of one action their common id", async () => {
    const key = await admin.createKey("bulk");
    const sent = { headers: { ...headers, authorization: `Bearer ${token}`, "x-change-id": "bulk-1" } };
    const rows = await rowsBy(async () => {
      await admin.send("PATCH", `/api/keys/${key.id}`, { ...sent, json: { name: "b" } });
      await admin.send("PATCH", `/api/keys/${key.id}`, { ...sent, json: { tags: ["x"] } });
    });
    const common = { actor: "ci (token)", role: "admin", change_id: "bulk-1" };
    expect(rows).toMatchObject([
      { ...common, before: '{"name":"bulk"}', after: '{"name":"b"}' },
      { ...common, before: '{"tags":[]}', after: '{"tags":["x"]}' },
    ]);
    expect(await read("?actor=ci%20(token)")).toHaveLength(2);
    expect(await read(`?target=key/${key.id}&action=key.delete`)).toEqual([]);
  });

  test("every other route that changes something leaves its one row", async () => {
    const guest = await admin.login();
    const stranger = await admin.login();
    const [listed] = (await admin.send("GET", "/api/backends", { as: owner })).json.backends;
    const rows = await rowsBy(async () => {
      for (const draining of [true, true, false]) await send("PATCH", `/api/backends/${listed.name}`, { draining });
      await send("PUT", "/api/prices", { currency: "EUR" });
      await send("PUT", "/api/key-policy", { defaults: { tokens_per_day: 5 } });
      await send("DELETE", "/api/in-flight/1-1");
      const team = (await send("POST", "/api/teams", { name: "ml" })).json;
      await send("PATCH", `/api/teams/${team.id}`, { tokens_per_day: 5 });
      await send("DELETE", `/api/teams/${team.id}`);
      const user = (await send("POST", "/api/users", { source: "open-webui@x", external: "kim" })).json;
      await send("PATCH", `/api/users/${user.id}`, { tokens_per_day: 5 });
      await send("DELETE", `/api/users/${user.id}`);
      const until = new Date(admin.time.now + 3_600_000).toISOString();
      await send("POST", "/api/notices/test");
      await send("POST", "/api/states/silence", { kind: "disk", until, why: "moved" });
      const { id } = (await send("POST", "/api/tokens", { name: "x", role: "viewer" })).json;
      await send("DELETE", `/api/tokens/${id}`);
      await admin.send("POST", "/api/logout", { as: guest, headers });
      const sessions = (await admin.send("GET", "/api/sessions", { as: stranger })).json;
      const { id: own } = sessions.find((one: { is_current: boolean }) => one.is_current);
      await send("DELETE", `/api/sessions/${own}`);
      await admin.login();
      await send("DELETE", "/api/sessions");
      await send("DELETE", "/api/sessions");
      const next = { current_password: password, new_password: `${password}!` };
      expect((await send("POST", "/api/password", next)).status).toBe(200);
      await send("POST", "/api/password", { current_password: `${password}!`, new_password: password });
    });
    expect(rows.map(({ action, target }) => [action, target])).toEqual([
      ["backend.update", `backend/${listed.name}`],
      ["backend.update", `backend/${listed.name}`],
      ["prices.set", "prices"],
      ["key_policy.set", "key_policy"],
      ["request.end", "request/1-1"],
      ["team.create", expect.stringMatching(/^team\/\d+$/)],
      ["team.update", expect.stringMatching(/^team\/\d+$/)],
      ["team.delete", expect.stringMatching(/^team\/\d+$/)],
      ["user.create", expect.stringMatching(/^user\/\d+$/)],
      ["user.update", expect.stringMatching(/^user\/\d+$/)],
      ["user.delete", expect.stringMatching(/^user\/\d+$/)],
      ["notice.test", "notice"],
      ["state.silence", "state/disk"],
      ["token.create", expect.stringMatching(/^token\/\d+$/)],
      ["token.delete", expect.stringMatching(/^token\/\d+$/)],
      ["session.log_out", "session"],
      ["session.end", expect.stringMatching(/^session\/[0-9a-f]{16}$/)],
      ["session.end_others", "session"],
      ["password.change", "password"],
      ["password.change", "password"],
    ]);
    expect(JSON.stringify(rows)).not.toContain("argon2");
    const seen = new Set([...rows.map(({ action }) => action), ...(await read()).map(({ action }) => action)]);
    expect(declared().filter(({ handler: { action = "" } }) => !seen.has(action))).toEqual([]);
  });

  test("the routes that declare a change are all that change something", () => {
    const changing = routes().filter(
      ({ method, path }) => !["GET", "ALL"].includes(method) && path.startsWith("/api/"),
    );
    const others = changing.filter(({ handler }) => handler.action === undefined);
    expect(others.map(({ method, path }) => `${method} ${path}`).toSorted()).toEqual([
      "POST /api/explain",
      "POST /api/gpu-stats",
      "POST /api/login",
    ]);
    expect(declared().filter(({ method }) => method === "GET")).toEqual([]);
  });

  test("refused logins are one row by address and hour, with their number", async () => {
    const fail = (address: string) =>
      admin.send("POST", "/api/login", {
        headers: { "x-forwarded-for": address },
        json: { username: "admin", password: "wrong" },
      });
    const rows = await rowsBy(async () => {
      for (const address of ["198.51.100.1", "198.51.100.1", "198.51.100.2"]) await fail(address);
      admin.time.now += 3_600_000;
      await fail("198.51.100.1");
    });
    expect(rows).toMatchObject([
      { action: "login.refused", address: "198.51.100.1", count: 2 },
      { action: "login.refused", address: "198.51.100.2", count: 1 },
      { action: "login.refused", address: "198.51.100.1", count: 1 },
    ]);
  });

  test("logins beyond the limit are counted with the next one that the database refuses", async () => {
    const fail = () =>
      admin.send("POST", "/api/login", {
        headers: { "x-forwarded-for": "198.51.100.9" },
        json: { username: "admin", password: "wrong" },
      });
    const flood = async (): Promise<number[]> => {
      const statuses: number[] = [];
      for (let n = 0; n < 13; n++) statuses.push((await fail()).status);
      return statuses;
    };
    const rows = await rowsBy(async () => {
      const expected = [...Array.from({ length: 10 }, () => 401), 429, 429, 429];
      expect(await flood()).toEqual(expected);
      admin.time.now += 61_000;
      expect(await flood()).toEqual(expected);
    });
    // The last two wait in memory.
    expect(rows).toMatchObject([{ action: "login.refused", address: "198.51.100.9", count: 24 }]);
  });

  test("a change whose row cannot be written does not happen", async () => {
    const key = await admin.createKey("whole");
    const noActor = null as unknown as string;
    const unknown = { actor: noActor, role: "admin", address: null, action: "key.update" } as const;
    const change = { ...unknown, id: String(key.id), requestId: null, changeId: null };
    const written = admin.store.keys.update(key.id, { name: "half" }, change);
    expect(await written.catch(String)).toMatch(/not.null/i);
    const list = await admin.send("GET", `/api/keys?key_id=${key.id}`, { as: owner });
    expect(list.json[0].name).toBe("whole");
  });

  test("pages go back by their cursor, and the CSV has all of them, with no cell that is a formula", async () => {
    const { json: formula } = await send("POST", "/api/tokens", { name: "=1+1", role: "admin" });
    const key = await admin.createKey("0");
    for (let n = 1; n <= 105; n++) {
      const as = { headers: { authorization: `Bearer ${formula.token}` } };
      await admin.send("PATCH", `/api/keys/${key.id}`, { ...as, json: { name: `${n}` } });
    }
    const filter = `target=key/${key.id}`;
    const first = (await admin.send("GET", `/api/audit?${filter}`, { as: owner })).json;
    const rest = (await admin.send("GET", `/api/audit?${filter}&cursor=${first.next_cursor}`, { as: owner })).json;
    expect([first.rows.length, rest.next_cursor]).toEqual([100, null]);
    const response = await fetch(`${admin.origin}/api/audit?${filter}&format=csv`, {
      headers: { cookie: owner.cookie },
    });
    expect(response.headers.get("content-type")).toStartWith("text/csv");
    const [head, latest, ...others] = (await response.text()).trimEnd().split("\r\n");
    expect(head).toBe("id,at,actor,role,address,action,target,before,after,request_id,change_id,count");
    expect(latest).toContain(`,'=1+1 (token),admin,`);
    expect(latest).toContain(`,key.update,key/${key.id},"{""name"":""104""}","{""name"":""105""}",`);
    const listed: Row[] = [...first.rows, ...rest.rows];
    expect([latest ?? "", ...others].map((line) => Number.parseInt(line, 10))).toEqual(listed.map(({ id }) => id));
    expect((await admin.send("GET", "/api/audit?cursor=x", { as: owner })).status).toBe(400);
  });

  test("no cell of the CSV is a formula in Japanese spreadsheets either", async () => {
    const { json: formula } = await send("POST", "/api/tokens", { name: "＝1+1", role: "admin" });
    const as = { headers: { authorization: `Bearer ${formula.token}` } };
    const key = await admin.createKey("wide");
    await admin.send("PATCH", `/api/keys/${key.id}`, { ...as, json: { name: "wider" } });
    const response = await fetch(`${admin.origin}/api/audit?target=key/${key.id}&action=key.update&format=csv`, {
      headers: { cookie: owner.cookie },
    });
    expect(await response.text()).toContain(`,'＝1+1 (token),admin,`);
  });

  test("what a change was before and after takes at most 4 KiB each", async () => {
    const long = "가".repeat(1000);
    const json = {
      name: "long",
      note: long,
      allowed_models: Array.from({ length: 20 }, (_, n) => `${n}${"나".repeat(60)}`),
    };
    const rows = await rowsBy(() => send("POST", "/api/keys", json));
    const bytes = Buffer.byteLength(rows[0]?.after ?? "");
    expect([bytes > 4000, bytes <= 4096]).toEqual([true, true]);
  });
});
