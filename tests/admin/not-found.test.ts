import { afterAll, beforeAll, expect, test } from "bun:test";
import fc from "fast-check";
import { type Admin, startAdmin, type Visitor } from "./support/admin-server.ts";

let admin: Admin;
let owner: Required<Visitor>;
beforeAll(async () => {
  admin = await startAdmin();
  owner = await admin.login();
});
afterAll(() => admin.stop());

test.each([
  ["PUT", "/api/keys", "GET, HEAD, POST"],
  ["DELETE", "/api/keys", "GET, HEAD, POST"],
  ["OPTIONS", "/api/keys", "GET, HEAD, POST"],
  ["GET", "/api/keys/1", "PATCH, DELETE"],
  ["HEAD", "/api/keys/1", "PATCH, DELETE"],
  ["POST", "/api/keys/1", "PATCH, DELETE"],
  ["GET", "/api/login", "POST"],
  ["GET", "/api/logout", "POST"],
  ["POST", "/api/me", "GET, HEAD"],
  ["PATCH", "/api/gpu-stats", "POST, GET, HEAD"],
  ["POST", "/api/usage/history", "GET, HEAD"],
  ["POST", "/api/overview", "GET, HEAD"],
  ["POST", "/healthz", "GET, HEAD"],
  ["DELETE", "/metrics", "GET, HEAD"],
])("%s %s is refused with the verbs that there are", async (method, path, allowed) => {
  for (const as of [{}, owner]) {
    const answer = await admin.send(method, path, { as });
    expect([answer.status, answer.headers.get("allow")]).toEqual([405, allowed]);
    if (method !== "HEAD") expect(answer.text).toBe('{"error":"Method not allowed"}');
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
])("%s is not found, by whatever verb, with a session or without", async (path) => {
  for (const method of ["GET", "POST", "DELETE", "OPTIONS", "PROPFIND"]) {
    for (const as of [{}, owner]) {
      const answer = await admin.send(method, path, { as });
      expect([answer.status, answer.text]).toEqual([404, '{"error":"Not found"}']);
      expect(answer.headers.get("cache-control")).toBe("no-store");
      expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
    }
  }
});

test("HEAD answers like GET, without a body", async () => {
  for (const path of ["/healthz", "/api/keys", "/api/usage/daily", "/api/usage/history", "/api/overview"]) {
    const [get, head] = [await admin.send("GET", path, { as: owner }), await admin.send("HEAD", path, { as: owner })];
    expect([head.status, head.text, head.headers.get("content-type")]).toEqual([
      get.status,
      "",
      get.headers.get("content-type"),
    ]);
  }
});

test("a failure of our own says nothing of it to the client and everything to the log", async () => {
  const broken = await startAdmin({
    store: (real) => ({
      ...real,
      keys: { ...real.keys, list: () => Promise.reject(new Error("at /home/us: inside")) },
    }),
  });
  const response = await fetch(`${broken.origin}/api/keys`, { headers: { cookie: (await broken.login()).cookie } });
  expect([response.status, await response.text()]).toEqual([500, '{"error":"Internal error"}']);
  expect(broken.logged.join("")).toContain("inside");
  await broken.stop();
});

const anything = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.json(),
  fc.constantFrom("name", "gpus", "[]", "{}", "null", "-0", "1e999", "0".repeat(400), "\0"),
);

test("nothing that anybody sends makes a 500 or comes back to them", async () => {
  const key = await admin.createKey("host");
  const path = fc.oneof(
    fc.constantFrom("/api/keys", "/api/login", "/api/gpu-stats", "/api/me", "/api/usage/daily", "/api/overview"),
    anything.map((text) => `/api/keys/${encodeURIComponent(text.toWellFormed())}`),
    anything.map((text) => `/api/usage/history?days=${encodeURIComponent(text.toWellFormed())}`),
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
    fc.asyncProperty(method, path, body, headers, async (verb, where, raw, sent) => {
      // Every step of the clock opens the login limit again.
      admin.time.now += 61_000;
      const marked = raw.replace(/"name":"/, '"name":"zzmarkzz');
      const answer = await admin.send(verb, where, { headers: sent, ...(verb !== "GET" && { raw: marked }) });
      expect(answer.status).toBeLessThan(500);
      if (answer.status >= 400) expect(answer.text).not.toContain("zzmarkzz");
    }),
    { numRuns: 400 },
  );
});
