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

/** A route that requires a session, and the response to the session's owner. */
interface SessionRoute {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  path: string;
  json?: object;
  status: number;
  contains: string;
}

const sessionRoutes: SessionRoute[] = [
  // The administrator is no user.
  { method: "GET", path: "/api/me/keys", status: 403, contains: "OpenID Connect" },
  { method: "GET", path: "/api/me/usage", status: 403, contains: "OpenID Connect" },
  { method: "POST", path: "/api/me/keys", json: { name: "k" }, status: 403, contains: "OpenID Connect" },
  { method: "PATCH", path: "/api/me/keys/1", json: { name: "k" }, status: 403, contains: "OpenID Connect" },
  { method: "POST", path: "/api/me/keys/1/rotate", json: {}, status: 403, contains: "OpenID Connect" },
  { method: "GET", path: "/api/keys", status: 200, contains: '"name":"first"' },
  { method: "POST", path: "/api/keys", json: { name: "second" }, status: 201, contains: '"name":"second"' },
  { method: "POST", path: "/api/keys/1/rotate", json: {}, status: 200, contains: '"id":1' },
  { method: "PATCH", path: "/api/keys/1", json: { name: "1st" }, status: 200, contains: '"name":"1st"' },
  { method: "POST", path: "/api/teams", json: { name: "ml" }, status: 201, contains: '"name":"ml"' },
  { method: "GET", path: "/api/teams", status: 200, contains: '"key_count":0' },
  { method: "GET", path: "/api/teams/1", status: 200, contains: '"name":"ml"' },
  { method: "PATCH", path: "/api/teams/1", json: { note: "n" }, status: 200, contains: '"note":"n"' },
  { method: "DELETE", path: "/api/teams/1", status: 200, contains: '{"ok":true}' },
  {
    method: "POST",
    path: "/api/users",
    json: { source: "open-webui@x", external: "kim" },
    status: 201,
    contains: '"external":"kim"',
  },
  { method: "GET", path: "/api/users", status: 200, contains: '"next_cursor":null' },
  { method: "GET", path: "/api/users/2", status: 200, contains: '"name":"kim"' },
  { method: "PATCH", path: "/api/users/2", json: { note: "n" }, status: 200, contains: '"note":"n"' },
  { method: "DELETE", path: "/api/users/2?forget=true", status: 200, contains: '{"ok":true}' },
  { method: "GET", path: "/api/usage/summary", status: 200, contains: '"date":"2026-05-01"' },
  { method: "GET", path: "/api/usage/total", status: 200, contains: '"total_tokens":0' },
  { method: "GET", path: "/api/usage/daily", status: 200, contains: "[]" },
  { method: "GET", path: "/api/usage/history", status: 200, contains: '"points":[]' },
  { method: "GET", path: "/api/usage/chart", status: 200, contains: '"series":[]' },
  { method: "GET", path: "/api/gpu-stats", status: 200, contains: "[]" },
  { method: "GET", path: "/api/gpu-stats/power-history", status: 200, contains: '"points":[]' },
  { method: "GET", path: "/api/gpu-stats/history", status: 200, contains: '"points":[]' },
  { method: "GET", path: "/api/states", status: 200, contains: '"unknown_since":null' },
  { method: "POST", path: "/api/states/silence", json: {}, status: 400, contains: "kind must be" },
  { method: "POST", path: "/api/notices/test", json: {}, status: 200, contains: '"ok":true' },
  { method: "GET", path: "/api/overview", status: 200, contains: '"in_flight":3' },
  { method: "GET", path: "/api/backends", status: 200, contains: '"file_hash":null' },
  {
    method: "PATCH",
    path: "/api/backends/127.0.0.1:8000",
    json: { draining: true },
    status: 200,
    contains: '"ok":true',
  },
  { method: "GET", path: "/api/requests", status: 200, contains: '"requests":[]' },
  { method: "GET", path: "/api/in-flight", status: 200, contains: '"requests":[]' },
  { method: "DELETE", path: "/api/in-flight/1-1", status: 200, contains: '{"ok":true}' },
  { method: "GET", path: "/api/requests/groups", status: 200, contains: '"rows":[]' },
  { method: "GET", path: "/api/usage/costs", status: 200, contains: '"next_cursor":null' },
  { method: "GET", path: "/api/latency", status: 200, contains: '"points":[]' },
  { method: "GET", path: "/api/client-rules", status: 200, contains: '"rows":[]' },
  { method: "GET", path: "/api/failures", status: 200, contains: '"points":[]' },
  { method: "GET", path: "/api/reconciliation", status: 200, contains: '"source":null' },
  { method: "GET", path: "/api/key-policy", status: 200, contains: '"team_id":null' },
  { method: "PUT", path: "/api/key-policy", json: { defaults: {} }, status: 200, contains: '"team_id":null' },
  { method: "GET", path: "/api/prices", status: 200, contains: '"models":[]' },
  { method: "PUT", path: "/api/prices", json: {}, status: 200, contains: '"models":[]' },
  { method: "POST", path: "/api/explain", json: { path: "/v1/x", body: "" }, status: 200, contains: '"edits":[]' },
  { method: "GET", path: "/api/audit", status: 200, contains: '"action":"key.create"' },
  { method: "GET", path: "/api/settings", status: 200, contains: '"name":"PORT"' },
  { method: "POST", path: "/api/password", json: {}, status: 400, contains: "current_password" },
  { method: "GET", path: "/api/sessions", status: 200, contains: '"is_current":true' },
  { method: "GET", path: "/api/tokens", status: 200, contains: "[]" },
  {
    method: "POST",
    path: "/api/tokens",
    json: { name: "ci", role: "viewer" },
    status: 201,
    contains: '"role":"viewer"',
  },
  { method: "DELETE", path: "/api/tokens/0", status: 404, contains: "Token not found" },
  { method: "DELETE", path: "/api/sessions/0", status: 404, contains: "Session not found" },
  { method: "GET", path: "/api/openapi.json", status: 200, contains: '"/api/keys/{id}"' },
  { method: "DELETE", path: "/api/keys/1", status: 200, contains: '{"ok":true}' },
  { method: "DELETE", path: "/api/sessions", status: 200, contains: '"ended":' },
  { method: "POST", path: "/api/logout", status: 200, contains: '{"ok":true}' },
];

test("every route but the open ones requires a session or key, and the CSRF token if it changes something", async () => {
  const open = new Set(["GET /healthz", "GET /readyz", "GET /api/login", "POST /api/login", "GET /api/me"]);
  const guarded = admin.routes.filter(({ method, path }) => method !== "ALL" && !open.has(`${method} ${path}`));
  expect(guarded).toHaveLength(
    sessionRoutes.length +
      [
        "GET /metrics",
        "GET /alerts.yaml",
        "GET /grafana.json",
        "POST /api/gpu-stats",
        "GET /api/own-key",
        "GET /api/own-key/activity",
      ].length,
  );
  for (const { method, path } of guarded) {
    const url = path.replace(/:(id|name)/, "1");
    expect([method, path, (await admin.send(method, url)).status]).toEqual([method, path, 401]);
    if (method === "GET" || path === "/api/gpu-stats") continue;
    const { status } = await admin.send(method, url, { as: { cookie: owner.cookie }, json: {} });
    expect([method, path, status]).toEqual([method, path, 403]);
  }
});

describe.each(sessionRoutes)("$method $path", ({ method, path, json, status, contains }) => {
  const send = (sent: Sent) => admin.send(method, path, { ...sent, ...(json !== undefined && { json }) });
  const changes = method !== "GET";

  test("refuses a request without a session", async () => {
    const response = await send({});
    expect([response.status, response.text]).toEqual([401, '{"error":"Authentication required"}']);
    expect(response.headers.getSetCookie()).toEqual([]);
  });

  test("refuses a request with only an API key", async () => {
    const response = await send({ headers: { authorization: `Bearer ${key.key}`, "x-api-key": key.key } });
    expect([response.status, response.text]).toEqual([401, '{"error":"Authentication required"}']);
  });

  test("refuses a forged session before it checks the CSRF token", async () => {
    const response = await send({ as: { cookie: "session=forged.signature", csrf: owner.csrf } });
    expect([response.status, response.text]).toEqual([401, '{"error":"Authentication required"}']);
  });

  if (changes) {
    test.each([
      ["no CSRF token", () => ({ cookie: owner.cookie })],
      ["the CSRF token of another session", () => ({ cookie: owner.cookie, csrf: other.csrf })],
    ])("refuses a session with %s", async (_, visitor) => {
      const response = await send({ as: visitor() });
      expect([response.status, response.text]).toEqual([403, '{"error":"CSRF token missing or invalid"}']);
    });
  }

  test("responds to a session, with headers against caching, sniffing and other origins", async () => {
    const response = await send({ as: { cookie: owner.cookie, ...(changes && { csrf: owner.csrf }) } });
    expect(response.status).toBe(status);
    expect(response.text).toContain(contains);
    expect(response.text).not.toContain(key.key);
    expect(response.text).not.toContain(owner.csrf);
    expect(response.headers.get("cache-control")).toBe("no-store");
    expect(response.headers.get("x-content-type-options")).toBe("nosniff");
    expect(response.headers.get("access-control-allow-origin")).toBeNull();
    expect(response.headers.getSetCookie()).toHaveLength(1);
  });
});
