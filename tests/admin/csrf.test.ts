import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Admin, startAdmin, type Visitor } from "./support/admin-server.ts";

let admin: Admin;
let owner: Required<Visitor>;
let cookie: string;
beforeAll(async () => {
  admin = await startAdmin();
  owner = await admin.login();
  cookie = owner.cookie;
});
afterAll(() => admin.stop());

const refusal = [403, '{"error":"CSRF token missing or invalid"}'];

test("a token in the body does as well as one in the header", async () => {
  const answer = await admin.send("POST", "/api/keys", {
    as: { cookie },
    json: { name: "by body", _csrf: owner.csrf },
  });
  expect([answer.status, answer.json.name]).toEqual([201, "by body"]);
});

test("routes that take no body find the token there too", async () => {
  const { id } = await admin.createKey("to delete");
  const deleted = await admin.send("DELETE", `/api/keys/${id}`, { as: { cookie }, json: { _csrf: owner.csrf } });
  expect(deleted.status).toBe(200);
  const leaving = await admin.login();
  const left = await admin.send("POST", "/api/logout", {
    as: { cookie: leaving.cookie },
    json: { _csrf: leaving.csrf },
  });
  expect(left.status).toBe(200);
});

test("routes that take no body do not mind one that makes no sense", async () => {
  const { id } = await admin.createKey("to delete");
  const answer = await admin.send("DELETE", `/api/keys/${id}`, {
    as: owner,
    raw: "{",
    headers: { "content-type": "text/x" },
  });
  expect(answer.status).toBe(200);
});

test("the token is never counted as a field", async () => {
  const { id } = await admin.createKey("unchanged");
  const answer = await admin.send("PATCH", `/api/keys/${id}`, { as: { cookie }, json: { _csrf: owner.csrf } });
  expect([answer.status, answer.json.error]).toEqual([400, "No fields to update"]);
});

test("a wrong header is not made good by a right body", async () => {
  const json = { name: "a", _csrf: owner.csrf };
  const answer = await admin.send("POST", "/api/keys", { as: { cookie, csrf: "0".repeat(64) }, json });
  expect([answer.status, answer.text]).toEqual(refusal);
});

test.each([
  ["an empty one", ""],
  ["a number", 7],
  ["null", null],
  ["a list that holds it", "LIST"],
  ["one in upper case", "UPPER"],
  ["one that is cut", "CUT"],
])("refuses %s in the body", async (_, given) => {
  const known: Record<string, unknown> = {
    LIST: [owner.csrf],
    UPPER: owner.csrf.toUpperCase(),
    CUT: owner.csrf.slice(1),
  };
  const token = typeof given === "string" && given in known ? known[given] : given;
  const answer = await admin.send("POST", "/api/keys", { as: { cookie }, json: { name: "a", _csrf: token } });
  expect([answer.status, answer.text]).toEqual(refusal);
});

test.each([
  [
    "no JSON type, as a form of another page could send it",
    "text/plain",
    () => JSON.stringify({ name: "a", _csrf: owner.csrf }),
  ],
  ["a form", "application/x-www-form-urlencoded", () => `_csrf=${owner.csrf}`],
  ["broken JSON", "application/json", () => `{"_csrf":"${owner.csrf}"`],
  ["more than 1 MiB", "application/json", () => `{"_csrf":"${owner.csrf}","a":"${"x".repeat(1024 * 1024)}"}`],
])("does not look for the token in a body with %s", async (_, type, body) => {
  const answer = await admin.send("POST", "/api/keys", {
    as: { cookie },
    raw: body(),
    headers: { "content-type": type },
  });
  expect([answer.status, answer.text]).toEqual(refusal);
});

test("a stranger is refused as a stranger, with a token or without", async () => {
  for (const as of [{}, { csrf: owner.csrf }]) {
    const answer = await admin.send("POST", "/api/keys", { as, json: { name: "a" } });
    expect(answer.status).toBe(401);
  }
});

test("login needs none, also with a session", async () => {
  const answer = await admin.send("POST", "/api/login", {
    as: { cookie },
    json: { username: "admin", password: "wrong" },
  });
  expect(answer.status).toBe(401);
});

test("GET and HEAD need none", async () => {
  for (const method of ["GET", "HEAD"])
    expect((await admin.send(method, "/api/keys", { as: { cookie } })).status).toBe(200);
});
