import { beforeAll, expect, test } from "bun:test";
import { shared } from "../support/shared.ts";
import { onEachEngine } from "../store/each-engine.ts";
import { roles } from "../../src/domain/changes.ts";
import { startAdmin, type Visitor } from "./support/admin-server.ts";

/** Who may do what. Reads are of everybody who is known, except those of tokens and sessions. */
const byAdmins = [
  "POST /api/keys",
  "PATCH /api/keys/{id}",
  "DELETE /api/keys/{id}",
  "POST /api/keys/{id}/rotate",
  "PUT /api/key-policy",
  "POST /api/teams",
  "PATCH /api/teams/{id}",
  "DELETE /api/teams/{id}",
  "POST /api/users",
  "PATCH /api/users/{id}",
  "DELETE /api/users/{id}",
  "PATCH /api/backends/{name}",
  "DELETE /api/in-flight/{id}",
  "PUT /api/prices",
  "POST /api/states/silence",
  "POST /api/notices/test",
];
const bySessionsOfAdmins = ["GET /api/tokens", "POST /api/tokens", "DELETE /api/tokens/{id}", "POST /api/password"];
const byMembers = ["GET /api/sessions", "DELETE /api/sessions", "DELETE /api/sessions/{id}", "POST /api/logout"];
/** Of who signed in at a provider. */
const byUsers = [
  "GET /api/me/keys",
  "GET /api/me/usage",
  "POST /api/me/keys",
  "PATCH /api/me/keys/{id}",
  "POST /api/me/keys/{id}/rotate",
];
const bySessions = [...bySessionsOfAdmins, ...byMembers, ...byUsers];
const changesNothing = ["POST /api/explain"];
/** They know no session: open, or for API keys. */
const ofOthers = new Set([
  "GET /api/login",
  "POST /api/login",
  "GET /api/me",
  "POST /api/gpu-stats",
  "GET /api/own-key",
  "GET /api/own-key/activity",
]);

onEachEngine(({ engine }) => {
  let operations: { name: string; method: string; path: string; security: Record<string, string[]>[] }[];
  const admin = shared(() => startAdmin({ engine, endRequest: async () => false }));
  const owner = shared(() => admin.login());
  beforeAll(async () => {
    const { paths } = (await admin.send("GET", "/api/openapi.json", { as: owner })).json;
    operations = Object.entries<Record<string, { security?: Record<string, string[]>[] }>>(paths).flatMap(
      ([path, verbs]) =>
        Object.entries(verbs).map(([verb, { security = [] }]) => {
          const method = verb.toUpperCase();
          return { name: `${method} ${path}`, method, path: path.replace(/\{\w+\}/, "0"), security };
        }),
    );
  });

  const create = async (json: object): Promise<{ id: number; token: string }> => {
    const created = await admin.send("POST", "/api/tokens", { as: owner, json });
    expect([created.status, created.json.error]).toEqual([201, undefined]);
    return created.json;
  };
  const bearing = (token: string) => ({ authorization: `Bearer ${token}` });
  const ofApi = () => operations.filter(({ name }) => name.includes(" /api/") && !ofOthers.has(name));

  test("each operation is in a group, which the document shows", () => {
    for (const { name, method, security } of ofApi()) {
      const role = bySessions.includes(name) ? [] : [{ token: [byAdmins.includes(name) ? "admin" : "viewer"] }];
      const session = method === "GET" ? { session: [] } : { session: [], csrf: [] };
      expect([name, security]).toEqual([name, [session, ...role]]);
      expect([name, method === "GET" || [...byAdmins, ...bySessions, ...changesNothing].includes(name)]).toEqual([
        name,
        true,
      ]);
    }
  });

  test.each(["viewer", "admin"] as const)("a %s may do what the table says, and nothing else", async (role) => {
    const { token } = await create({ name: role, role });
    for (const { name, method, path } of ofApi()) {
      const { status, headers } = await admin.send(method, path, {
        headers: bearing(token),
        ...(method !== "GET" && { json: {} }),
      });
      const isRefused = bySessions.includes(name) || (role === "viewer" && byAdmins.includes(name));
      expect([name, isRefused ? status === 403 : ![401, 403].includes(status) && status < 500]).toEqual([name, true]);
      expect(headers.getSetCookie()).toEqual([]);
    }
    expect((await admin.send("POST", "/api/keys", { headers: bearing(token), json: { name: role } })).status).toBe(
      role === "admin" ? 201 : 403,
    );
  });

  test.each(roles)("who signed in as a %s may do what the table says, and nothing else", async (role) => {
    const person = await admin.signIn({ name: role, role });
    const may = (name: string, method: string): boolean => {
      if (role === "admin" || [...byMembers, ...byUsers].includes(name)) return true;
      const isOfAdmins = [...byAdmins, ...bySessionsOfAdmins].includes(name);
      return role === "viewer" && !isOfAdmins && (method === "GET" || changesNothing.includes(name));
    };
    const last = "POST /api/logout";
    for (const { name, method, path } of ofApi().toSorted(
      (a, b) => Number(a.name === last) - Number(b.name === last),
    )) {
      const { status } = await admin.send(method, path, { as: person, ...(method !== "GET" && { json: {} }) });
      // A wrong password is answered like what may not be done.
      const isAllowed = ![401, 403].includes(status) && status < 500;
      expect([name, status === 403, isAllowed]).toEqual([name, !may(name, method), may(name, method)]);
    }
    expect((await admin.send("GET", "/api/sessions", { as: person })).status).toBe(401);
    // An administrator has ended all other sessions.
    Object.assign(owner, await admin.login());
  });

  test("the administrator, who is no user, has no keys of his own", async () => {
    for (const { method, path } of operations.filter(({ name }) => byUsers.includes(name))) {
      const { status, json } = await admin.send(method, path, { as: owner, ...(method !== "GET" && { json: {} }) });
      expect([status, json]).toEqual([403, { error: "This is for who signs in with OpenID Connect" }]);
    }
  });

  test("a token is refused when it has expired, is deleted, or is not one", async () => {
    const expiring = await create({ name: "short", role: "admin", expires_at: "2026-05-01T12:00:01+09:00" });
    const eternal = await create({ name: "long", role: "admin", expires_at: null });
    const status = async (token: string) => (await admin.send("GET", "/api/keys", { headers: bearing(token) })).status;
    expect([await status(expiring.token), await status(eternal.token)]).toEqual([200, 200]);
    admin.time.now += 1000;
    expect([await status(expiring.token), await status(eternal.token)]).toEqual([401, 200]);
    const deletion = `/api/tokens/${eternal.id}`;
    expect((await admin.send("DELETE", deletion, { as: owner })).status).toBe(200);
    expect((await admin.send("DELETE", deletion, { as: owner })).status).toBe(404);
    expect([await status(eternal.token), await status("tgt_")]).toEqual([401, 401]);
  });

  test("a request with a session cookie is a session's, whatever else it carries", async () => {
    const { token } = await create({ name: "beside", role: "admin" });
    const send = (as: Visitor) => admin.send("POST", "/api/keys", { as, headers: bearing(token), json: { name: "a" } });
    expect((await send({ cookie: owner.cookie })).status).toBe(403);
    expect((await send(owner)).status).toBe(201);
    for (const cookie of ["session=forged", "a=b; session=%zz"]) expect((await send({ cookie })).status).toBe(401);
    expect((await send({ cookie: "a=b" })).status).toBe(201);
  });

  test("an API key that begins like a token is an API key", async () => {
    const key = "tgt_0123456789";
    const created = await admin.send("POST", "/api/keys", { as: owner, json: { name: "tgt", key } });
    expect(created.status).toBe(201);
    const sent = { headers: bearing(key), json: { gpus: [] } };
    expect((await admin.send("POST", "/api/gpu-stats", sent)).status).toBe(200);
    expect((await admin.send("GET", "/api/keys", { headers: bearing(key) })).status).toBe(401);
    const { token } = await create({ name: "no key", role: "admin" });
    expect((await admin.send("POST", "/api/gpu-stats", { ...sent, headers: bearing(token) })).status).toBe(401);
  });

  test("the list shows the head of a token and its last use, never the token", async () => {
    const { id, token } = await create({ name: " ci ", role: "viewer" });
    await admin.send("GET", "/api/keys", { headers: bearing(token) });
    await admin.idle();
    const list = await admin.send("GET", "/api/tokens", { as: owner });
    const now = new Date(admin.time.now + 9 * 3_600_000).toISOString().replace("Z", "+09:00");
    expect(list.json.find((one: { id: number }) => one.id === id)).toMatchObject({
      head: token.slice(0, 8),
      name: "ci",
      role: "viewer",
      created_at: now,
      expires_at: expect.stringMatching(/^2026-07-30T/),
      last_used_at: now,
    });
    expect(list.text).not.toContain(token);
    expect(admin.logged.join("")).not.toContain(token);
  });

  test.each([
    [{ role: "admin" }, "name is required"],
    [{ name: "a", role: "root" }, "role must be one of viewer, admin"],
    [{ name: "a", role: "admin", expires_at: "tomorrow" }, "expires_at must be an ISO 8601 timestamp with an offset"],
    [{ name: "a", role: "admin", expire_at: null }, "Unknown field: expire_at"],
  ])("a token is not created from %j", async (json, error) => {
    const { status, json: body } = await admin.send("POST", "/api/tokens", { as: owner, json });
    expect([status, body.error]).toEqual([400, error]);
  });
});
