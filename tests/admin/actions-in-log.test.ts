import { expect, test } from "bun:test";
import { password } from "../support/admin-client.ts";
import { startAdmin, type Visitor } from "./support/admin-server.ts";
import { shared } from "../support/shared.ts";

const admin = shared(() => startAdmin({ trustedHops: 1 }));
const owner = shared(() => admin.login());

const headers = { "x-forwarded-for": "203.0.113.7" };
const actor = { username: "admin", address: "203.0.113.7" };

/** @returns what the log gained meanwhile */
async function loggedBy(act: () => Promise<unknown>): Promise<unknown[]> {
  const before = admin.logged.length;
  await act();
  return admin.logged.slice(before).map((line) => {
    const { time: _, ...entry } = JSON.parse(line) as Record<string, unknown>;
    return entry;
  });
}

test("each change of a key is logged with who made it, from where, and the key's id and name", async () => {
  const secret = "sk-a-secret-that-nobody-may-read";
  let id = 0;
  const change = (json: unknown) => admin.send("PATCH", `/api/keys/${id}`, { as: owner, headers, json });
  const created = await loggedBy(async () => {
    const sent = { as: owner, headers, json: { name: "first", key: secret } };
    ({ id } = (await admin.send("POST", "/api/keys", sent)).json);
  });
  const key = { keyId: id, name: "first" };
  expect(created).toEqual([{ level: "info", message: "Key created", ...actor, ...key }]);

  expect(await loggedBy(() => change({ is_active: false }))).toEqual([
    { level: "info", message: "Key deactivated", ...actor, ...key },
  ]);
  const renamed = { keyId: id, name: "second" };
  expect(await loggedBy(() => change({ name: "second", is_active: true }))).toEqual([
    { level: "info", message: "Key renamed", ...actor, ...renamed },
    { level: "info", message: "Key activated", ...actor, ...renamed },
  ]);
  expect(await loggedBy(() => admin.send("DELETE", `/api/keys/${id}`, { as: owner, headers }))).toEqual([
    { level: "info", message: "Key deleted", ...actor, ...renamed },
  ]);
  expect(admin.logged.join("")).not.toContain(secret);
});

test("a change that fails is not logged as made", async () => {
  const failed = await loggedBy(async () => {
    await admin.send("POST", "/api/keys", { as: owner, json: { name: "" } });
    await admin.send("PATCH", "/api/keys/999", { as: owner, json: { name: "a" } });
    await admin.send("DELETE", "/api/keys/999", { as: owner });
  });
  expect(failed).toEqual([]);
});

test("login and logout are logged with who and from where, and without a secret", async () => {
  const began = admin.logged.length;
  let visitor: Required<Visitor> = owner;
  const json = { username: "admin", password };
  const login = await loggedBy(async () => {
    const response = await admin.send("POST", "/api/login", { headers, json });
    visitor = { cookie: response.headers.getSetCookie()[0]?.split(";")[0] ?? "", csrf: response.json.csrf_token };
  });
  expect(login).toEqual([{ level: "info", message: "Admin logged in", ...actor }]);
  expect(await loggedBy(() => admin.send("POST", "/api/logout", { as: visitor, headers }))).toEqual([
    { level: "info", message: "Admin logged out", ...actor },
  ]);
  const lines = admin.logged.slice(began).join("");
  for (const secret of [password, visitor.csrf, visitor.cookie.slice("session=".length)])
    expect(lines).not.toContain(secret);
});

test("a failed CSRF check is logged", async () => {
  const as = { cookie: owner.cookie, csrf: "f".repeat(64) };
  const refused = await loggedBy(() => admin.send("DELETE", "/api/keys/1", { as, headers }));
  expect(refused).toEqual([
    {
      level: "warn",
      message: "Admin request refused: CSRF token missing or invalid",
      ...actor,
      method: "DELETE",
      path: "/api/keys/1",
    },
  ]);
  const { cookie } = owner;
  expect(await loggedBy(() => admin.send("POST", "/api/keys", { as: { cookie }, headers, json: {} }))).toMatchObject([
    { level: "warn", method: "POST" },
  ]);
});
