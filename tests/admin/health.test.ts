import { afterAll, beforeAll, expect, test } from "bun:test";
import { StorageError } from "../../src/store/store.ts";
import { failing } from "./support/failing.ts";
import { type Admin, startAdmin } from "./support/admin-server.ts";

let admin: Admin;
let writable = true;
let checks = 0;
let upstream = true;
beforeAll(async () => {
  admin = await startAdmin({
    probeUpstream: async () => ({ ok: upstream }),
    store: (real) => ({
      ...real,
      checkWritable: async () => {
        checks += 1;
        if (!writable) throw new StorageError("disk full at /var/lib/tollgate");
        await real.checkWritable();
      },
    }),
  });
});
afterAll(() => admin.stop());

test("GET /healthz says that the process is up, whatever else is down", async () => {
  writable = false;
  const answer = await admin.send("GET", "/healthz");
  expect([answer.status, answer.text]).toEqual([200, '{"status":"ok"}']);
  writable = true;
});

test.each([
  [true, true, 200, { status: "ready", database: "ok", upstream: "ok" }],
  [true, false, 200, { status: "ready", database: "ok", upstream: "not answering" }],
  [false, true, 503, { status: "unavailable", database: "not writable", upstream: "ok" }],
])("GET /readyz with a writable database %p and a backend %p", async (database, backend, status, body) => {
  [writable, upstream] = [database, backend];
  admin.time.now += 10_000;
  const answer = await admin.send("GET", "/readyz");
  expect([answer.status, answer.json]).toEqual([status, body]);
});

test("GET /readyz writes once a second at most, however often strangers ask", async () => {
  admin.time.now += 10_000;
  checks = 0;
  await Promise.all(Array.from({ length: 20 }, () => admin.send("GET", "/readyz")));
  expect(checks).toBe(1);
});

test("GET /metrics is for a session or the metrics token", async () => {
  const { cookie } = await admin.login();
  const key = await admin.createKey("scraper");
  const status = async (headers: Record<string, string>) => (await admin.send("GET", "/metrics", { headers })).status;
  expect(await status({ cookie })).toBe(200);
  expect(await status({ authorization: "Bearer scrape-me" })).toBe(200);
  for (const headers of [
    {},
    { authorization: "Bearer scrape-m" },
    { authorization: "Bearer " },
    { authorization: "Basic scrape-me" },
    { authorization: `Bearer ${key.key}` },
    { cookie: "session=a.b" },
  ] as Array<Record<string, string>>) {
    expect(await status(headers)).toBe(401);
  }
});

test("GET /metrics hands the registry's text over as Prometheus expects it", async () => {
  const answer = await admin.send("GET", "/metrics", { headers: { authorization: "Bearer scrape-me" } });
  expect(answer.text).toBe("# HELP tollgate_up\ntollgate_up 1\n");
  expect(answer.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
  expect(answer.headers.get("cache-control")).toBe("no-store");
});

test("GET /metrics is for sessions alone where no token is set", async () => {
  const closed = await startAdmin({ config: { username: "admin", metricsToken: undefined } });
  for (const token of ["undefined", "", "null"]) {
    const answer = await closed.send("GET", "/metrics", { headers: { authorization: `Bearer ${token}` } });
    expect(answer.status).toBe(401);
  }
  await closed.stop();
});

test("storage that does not answer is 503 for whoever needs it, and nothing of it is told", async () => {
  const broken = await startAdmin({
    store: (real) => ({
      ...real,
      keys: { ...real.keys, list: () => Promise.reject(new StorageError("disk full at /var/lib/tollgate")) },
      usage: {
        ...real.usage,
        daily: () => failing(new StorageError("database is locked")),
      },
    }),
  });
  const { cookie } = await broken.login();
  for (const path of ["/api/keys", "/api/usage/daily"]) {
    const answer = await broken.send("GET", path, { as: { cookie } });
    expect([answer.status, answer.text]).toEqual([503, '{"error":"The database is not available, try again later"}']);
    expect(answer.headers.get("retry-after")).toBe("5");
  }
  expect(broken.logged.join("")).toContain("database is locked");
  await broken.stop();
});
