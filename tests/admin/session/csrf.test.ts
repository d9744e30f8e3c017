import { expect, test } from "bun:test";
import { startAdmin } from "../support/admin-server.ts";
import { shared } from "../../support/shared.ts";

const admin = shared(() => startAdmin());
const owner = shared(() => admin.login());

const refused = [403, '{"error":"CSRF token missing or invalid"}'];

test("the token may be in the body instead of the header", async () => {
  const response = await admin.send("POST", "/api/keys", {
    as: { cookie: owner.cookie },
    json: { name: "by body", _csrf: owner.csrf },
  });
  expect([response.status, response.json.name]).toEqual([201, "by body"]);
});

test("routes without a body of their own accept it there too", async () => {
  const { id } = await admin.createKey("to delete");
  const deleted = await admin.send("DELETE", `/api/keys/${id}`, {
    as: { cookie: owner.cookie },
    json: { _csrf: owner.csrf },
  });
  expect(deleted.status).toBe(200);
  const leaving = await admin.login();
  const left = await admin.send("POST", "/api/logout", {
    as: { cookie: leaving.cookie },
    json: { _csrf: leaving.csrf },
  });
  expect(left.status).toBe(200);
});

test("routes without a body of their own ignore an invalid one", async () => {
  const { id } = await admin.createKey("to delete");
  const response = await admin.send("DELETE", `/api/keys/${id}`, {
    as: owner,
    raw: "{",
    headers: { "content-type": "text/x" },
  });
  expect(response.status).toBe(200);
});

test("the token does not count as a field", async () => {
  const { id } = await admin.createKey("unchanged");
  const response = await admin.send("PATCH", `/api/keys/${id}`, {
    as: { cookie: owner.cookie },
    json: { _csrf: owner.csrf },
  });
  expect([response.status, response.json.error]).toEqual([400, "No fields to update"]);
});

test("a wrong token in the header is refused, whatever the body holds", async () => {
  const json = { name: "a", _csrf: owner.csrf };
  const response = await admin.send("POST", "/api/keys", { as: { cookie: owner.cookie, csrf: "0".repeat(64) }, json });
  expect([response.status, response.text]).toEqual(refused);
});

test.each([
  ["an empty token", ""],
  ["a number", 7],
  ["null", null],
  ["a list that contains it", "LIST"],
  ["the token in upper case", "UPPER"],
  ["a truncated token", "CUT"],
])("refuses %s in the body", async (_, given) => {
  const known: Record<string, unknown> = {
    LIST: [owner.csrf],
    UPPER: owner.csrf.toUpperCase(),
    CUT: owner.csrf.slice(1),
  };
  const token = typeof given === "string" && given in known ? known[given] : given;
  const response = await admin.send("POST", "/api/keys", {
    as: { cookie: owner.cookie },
    json: { name: "a", _csrf: token },
  });
  expect([response.status, response.text]).toEqual(refused);
});

test.each([
  [
    "another content type, which a form on another site could send",
    "text/plain",
    () => JSON.stringify({ name: "a", _csrf: owner.csrf }),
  ],
  ["form fields", "application/x-www-form-urlencoded", () => `_csrf=${owner.csrf}`],
  ["broken JSON", "application/json", () => `{"_csrf":"${owner.csrf}"`],
  ["more than 1 MiB", "application/json", () => `{"_csrf":"${owner.csrf}","a":"${"x".repeat(1024 * 1024)}"}`],
])("does not look for the token in a body with %s", async (_, type, body) => {
  const response = await admin.send("POST", "/api/keys", {
    as: { cookie: owner.cookie },
    raw: body(),
    headers: { "content-type": type },
  });
  expect([response.status, response.text]).toEqual(refused);
});

test("login needs no token, even with a session", async () => {
  const response = await admin.send("POST", "/api/login", {
    as: { cookie: owner.cookie },
    json: { username: "admin", password: "wrong" },
  });
  expect(response.status).toBe(401);
});
