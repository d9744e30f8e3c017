import { expect, test } from "bun:test";
import fc from "fast-check";
import { startAdmin } from "../support/admin-server.ts";
import { shared } from "../../support/shared.ts";

const admin = shared(() => startAdmin());
const owner = shared(() => admin.login());

test.each([
  ["PUT", "/api/keys", "GET, HEAD, POST"],
  ["DELETE", "/api/keys", "GET, HEAD, POST"],
  ["OPTIONS", "/api/keys", "GET, HEAD, POST"],
  ["GET", "/api/keys/1", "PATCH, DELETE"],
  ["HEAD", "/api/keys/1", "PATCH, DELETE"],
  ["POST", "/api/keys/1", "PATCH, DELETE"],
  ["PATCH", "/api/login", "GET, HEAD, POST"],
  ["GET", "/api/logout", "POST"],
  ["POST", "/api/me", "GET, HEAD"],
  ["PATCH", "/api/gpu-stats", "POST, GET, HEAD"],
  ["POST", "/api/usage/history", "GET, HEAD"],
  ["POST", "/api/overview", "GET, HEAD"],
  ["POST", "/healthz", "GET, HEAD"],
  ["DELETE", "/metrics", "GET, HEAD"],
])("%s %s is refused with the methods that exist", async (method, path, allowed) => {
  for (const as of [{}, owner]) {
    const response = await admin.send(method, path, { as });
    expect([response.status, response.headers.get("allow")]).toEqual([405, allowed]);
    if (method !== "HEAD") expect(response.text).toBe('{"error":"Method not allowed"}');
  }
});

test.each([
  "/api",
  "/api/",
  "/api/nothing",
  "/api/keys/1/2",
  "/api/usage",
  "/api//keys",
  "/api/.env",
  "/api/keys%2F1",
  "/api/%zz",
])("%s is not found with any method, with a session or without", async (path) => {
  for (const method of ["GET", "POST", "DELETE", "OPTIONS", "PROPFIND"]) {
    for (const as of [{}, owner]) {
      const response = await admin.send(method, path, { as });
      expect([response.status, response.text]).toEqual([404, '{"error":"Not found"}']);
      expect(response.headers.get("cache-control")).toBe("no-store");
      expect(response.headers.get("x-content-type-options")).toBe("nosniff");
    }
  }
});

test("HEAD responds like GET, without a body", async () => {
  const reports = ["daily", "history", "chart", "costs"].map((name) => `/api/usage/${name}`);
  for (const path of ["/healthz", "/api/keys", ...reports, "/api/overview"]) {
    const [get, head] = [await admin.send("GET", path, { as: owner }), await admin.send("HEAD", path, { as: owner })];
    expect([head.status, head.text, head.headers.get("content-type")]).toEqual([
      get.status,
      "",
      get.headers.get("content-type"),
    ]);
  }
});

const anything = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.json(),
  fc.constantFrom("name", "gpus", "[]", "{}", "null", "-0", "1e999", "0".repeat(400), "\0"),
);

test("no request causes a 500, and no error echoes what was sent", async () => {
  const key = await admin.createKey("host");
  const path = fc.oneof(
    fc.constantFrom("/api/keys", "/api/login", "/api/gpu-stats", "/api/me", "/api/usage/daily", "/api/overview"),
    anything.map((text) => `/api/keys/${encodeURIComponent(text.toWellFormed())}`),
    anything.map((text) => `/api/usage/history?days=${encodeURIComponent(text.toWellFormed())}`),
    fc
      .tuple(
        fc.constantFrom("chart", "costs"),
        fc.constantFrom("from", "to", "since", "have", "hide", "q", "key_id", "by", "cursor", "metric", "top", "list"),
        anything,
      )
      .map(([report, name, text]) => `/api/usage/${report}?${name}=${encodeURIComponent(text.toWellFormed())}`),
    anything.map((text) => `/api/gpu-stats/power-history?bucket_minutes=${encodeURIComponent(text.toWellFormed())}`),
  );
  const body = fc.oneof(
    anything,
    fc.object().map((value) => JSON.stringify(value)),
    fc
      .record({ name: anything, key: anything, is_active: anything, username: anything, password: anything })
      .map((value) => JSON.stringify(value)),
    fc
      .array(fc.record({ gpu_id: fc.jsonValue(), name: fc.jsonValue(), temp_c: fc.jsonValue() }))
      .map((gpus) => JSON.stringify({ gpus })),
  );
  const method = fc.constantFrom("GET", "POST", "PATCH", "DELETE", "PUT");
  const headers = fc.record({
    "content-type": fc.constantFrom("application/json", "text/plain"),
    "x-api-key": fc.constantFrom(key.key, "stranger"),
    "x-forwarded-for": fc.constantFrom("1.2.3.4", "x", ",,,"),
    cookie: fc.constantFrom(owner.cookie, "session=a.b", "session=%", "=;;"),
    "x-csrf-token": fc.constantFrom(owner.csrf, "0"),
  });
  await fc.assert(
    fc.asyncProperty(method, path, body, headers, async (verb, target, raw, sent) => {
      // The step resets the limit on logins.
      admin.time.now += 61_000;
      const marked = raw.replace(/"name":"/, '"name":"zzmarkzz');
      const response = await admin.send(verb, target, { headers: sent, ...(verb !== "GET" && { raw: marked }) });
      expect(response.status).toBeLessThan(500);
      if (response.status >= 400) expect(response.text).not.toContain("zzmarkzz");
    }),
    { numRuns: 400 },
  );
});
