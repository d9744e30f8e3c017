import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type Admin, type Sent, startAdmin, type Visitor } from "./support/admin-server.ts";

let admin: Admin;
let key: { id: number; key: string };
let owner: Required<Visitor>;
let other: Required<Visitor>;

beforeAll(async () => {
  admin = await startAdmin();
  [owner, other] = [await admin.login(), await admin.login()];
  key = await admin.createKey("first");
});
afterAll(() => admin.stop());

/** A route that only a session may use, and what its owner gets. */
interface SessionRoute {
  method: "GET" | "POST" | "PATCH" | "DELETE";
  path: string;
  json?: object;
  status: number;
  contains: string;
}

const sessionRoutes: SessionRoute[] = [
  { method: "GET", path: "/api/keys", status: 200, contains: '"name":"first"' },
  { method: "POST", path: "/api/keys", json: { name: "second" }, status: 201, contains: '"name":"second"' },
  { method: "PATCH", path: "/api/keys/1", json: { name: "1st" }, status: 200, contains: '"name":"1st"' },
  { method: "GET", path: "/api/usage/summary", status: 200, contains: '"date":"2026-05-01"' },
  { method: "GET", path: "/api/usage/total", status: 200, contains: '"total_tokens":0' },
  { method: "GET", path: "/api/usage/daily", status: 200, contains: "[]" },
  { method: "GET", path: "/api/usage/history", status: 200, contains: '"points":[]' },
  { method: "GET", path: "/api/gpu-stats", status: 200, contains: "[]" },
  { method: "GET", path: "/api/gpu-stats/power-history", status: 200, contains: '"points":[]' },
  { method: "GET", path: "/api/overview", status: 200, contains: '"in_flight":3' },
  { method: "GET", path: "/api/openapi.json", status: 200, contains: '"/api/keys/{id}"' },
  { method: "DELETE", path: "/api/keys/1", status: 200, contains: '{"ok":true}' },
  { method: "POST", path: "/api/logout", status: 200, contains: '{"ok":true}' },
];

describe.each(sessionRoutes)("$method $path", ({ method, path, json, status, contains }) => {
  const send = (sent: Sent) => admin.send(method, path, { ...sent, ...(json !== undefined && { json }) });
  const changes = method !== "GET";

  test("refuses who has no session", async () => {
    const answer = await send({});
    expect([answer.status, answer.text]).toEqual([401, '{"error":"Authentication required"}']);
    expect(answer.headers.getSetCookie()).toEqual([]);
  });

  test("refuses who has an API key alone", async () => {
    const answer = await send({ headers: { authorization: `Bearer ${key.key}`, "x-api-key": key.key } });
    expect([answer.status, answer.text]).toEqual([401, '{"error":"Authentication required"}']);
  });

  test("refuses a forged session before it looks at the CSRF token", async () => {
    const answer = await send({ as: { cookie: "session=forged.signature", csrf: owner.csrf } });
    expect([answer.status, answer.text]).toEqual([401, '{"error":"Authentication required"}']);
  });

  if (changes) {
    test.each([
      ["no CSRF token", () => ({ cookie: owner.cookie })],
      ["the CSRF token of another session", () => ({ cookie: owner.cookie, csrf: other.csrf })],
    ])("refuses a session with %s, and says nothing else", async (_, visitor) => {
      const answer = await send({ as: visitor() });
      expect([answer.status, answer.text]).toEqual([403, '{"error":"CSRF token missing or invalid"}']);
    });
  }

  test("answers who has everything, uncached, unsniffed and for its own origin alone", async () => {
    const answer = await send({ as: { cookie: owner.cookie, ...(changes && { csrf: owner.csrf }) } });
    expect(answer.status).toBe(status);
    expect(answer.text).toContain(contains);
    expect(answer.text).not.toContain(key.key);
    expect(answer.text).not.toContain(owner.csrf);
    expect(answer.headers.get("cache-control")).toBe("no-store");
    expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
    expect(answer.headers.get("access-control-allow-origin")).toBeNull();
    expect(answer.headers.getSetCookie()).toHaveLength(1);
  });
});
