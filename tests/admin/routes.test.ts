import { expect, test } from "bun:test";
import { shared } from "../support/shared.ts";
import { startAdmin } from "./support/admin-server.ts";

const admin = shared(() => startAdmin());
const owner = shared(() => admin.login());
const other = shared(() => admin.login());
const key = shared(() => admin.createKey("first"));

const open = ["GET /healthz", "GET /readyz", "GET /api/login", "POST /api/login", "GET /api/me"];
/** For API keys, and for programs that scrape. */
const ofPrograms = [
  "GET /metrics",
  "GET /alerts.yaml",
  "GET /grafana.json",
  "POST /api/gpu-stats",
  "GET /api/own-key",
  "GET /api/own-key/activity",
];

const routes = () =>
  admin.routes
    .filter(({ method }) => method !== "ALL")
    .map(({ method, path }) => ({ name: `${method} ${path}`, method, url: path.replace(/:(id|name)/, "1") }));
const ofSessions = () => routes().filter(({ name }) => ![...open, ...ofPrograms].includes(name));

test("every route but the open ones refuses who is unknown", async () => {
  expect(routes().map(({ name }) => name)).toEqual(expect.arrayContaining([...open, ...ofPrograms]));
  for (const { name, method, url } of routes().filter((route) => !open.includes(route.name))) {
    const { status, headers } = await admin.send(method, url);
    expect([name, status, headers.getSetCookie()]).toEqual([name, 401, []]);
  }
});

test("the others ask for a session, an API key or a forged one is none, and changes for its CSRF token", async () => {
  for (const { name, method, url } of ofSessions()) {
    for (const sent of [
      {},
      { headers: { authorization: `Bearer ${key.key}`, "x-api-key": key.key } },
      { as: { cookie: "session=forged.signature", csrf: owner.csrf } },
    ]) {
      const { status, text } = await admin.send(method, url, sent);
      expect([name, status, text]).toEqual([name, 401, '{"error":"Authentication required"}']);
    }
    if (method === "GET") continue;
    for (const csrf of [{}, { csrf: other.csrf }]) {
      const { status, text } = await admin.send(method, url, { as: { cookie: owner.cookie, ...csrf }, json: {} });
      expect([name, status, text]).toEqual([name, 403, '{"error":"CSRF token missing or invalid"}']);
    }
  }
});

test("they respond to a session, with headers against caching, sniffing and other origins", async () => {
  const last = "POST /api/logout";
  for (const { name, method, url } of ofSessions().toSorted(
    (a, b) => Number(a.name === last) - Number(b.name === last),
  )) {
    const { status, text, headers } = await admin.send(method, url, {
      as: owner,
      ...(method !== "GET" && { json: {} }),
    });
    expect([name, status !== 401 && status < 500]).toEqual([name, true]);
    for (const secret of [key.key, owner.csrf]) expect(text).not.toContain(secret);
    const said = ["cache-control", "x-content-type-options", "access-control-allow-origin"].map((one) =>
      headers.get(one),
    );
    expect([name, ...said, headers.getSetCookie().length]).toEqual([name, "no-store", "nosniff", null, 1]);
  }
});
