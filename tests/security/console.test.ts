import { describe, expect, test } from "bun:test";
import { equalSecrets } from "../../src/admin/session/secrets.ts";
import { leastProcessorMs } from "../support/processor-time.ts";
import { connectRaw } from "../support/raw-client.ts";
import { startTollgate } from "../support/tollgate.ts";
import { shared } from "../support/shared.ts";

const gate = shared(() => startTollgate({ PROXY_UPSTREAM_URL: "http://127.0.0.1:1" }));

const json = { "content-type": "application/json" };

const isLive = async (cookie: string): Promise<boolean> =>
  (await fetch(`${gate.adminUrl}/api/keys`, { headers: { cookie } })).ok;

describe("CSRF", () => {
  test("by a link changes nothing, since no GET writes", async () => {
    const before = JSON.stringify(await gate.admin.listKeys());
    for (const path of [
      "/api/keys?name=forged",
      `/api/keys/${gate.keyId}?_method=DELETE`,
      "/api/logout",
      "/api/login",
    ]) {
      await fetch(gate.adminUrl + path, { headers: { cookie: gate.admin.cookie, "x-http-method-override": "DELETE" } });
    }
    expect(JSON.stringify(await gate.admin.listKeys())).toBe(before);
    expect(await isLive(gate.admin.cookie)).toBe(true);
  });
});

describe("pages:", () => {
  test.each([
    "/../package.json",
    "/assets/../../package.json",
    "/assets/..%2f..%2fpackage.json",
    "/assets/%2e%2e/%2e%2e/package.json",
    "/assets/..%5c..%5cpackage.json",
    "/assets/....//....//package.json",
    "/assets/%252e%252e%252fpackage.json",
    "//etc/passwd",
    "/assets//etc/passwd",
    "/file:///etc/passwd",
    "/.env",
    "/assets/..%00/package.json",
    "/tollgate.db",
    "/secret_key",
  ])("path traversal in assets: %s does not return a file", async (target) => {
    const client = await connectRaw(gate.adminUrl);
    client.request("GET", target);
    const { status } = await client.head();
    const text = await client.text();
    client.close();
    expect(status).not.toBe(500);
    for (const secret of ['"devDependencies"', "root:", "SQLite format", "import "]) expect(text).not.toContain(secret);
  });
});

describe("timing", () => {
  test("of login: an unknown username costs as much as a wrong password", async () => {
    await using fresh = await startTollgate({ PROXY_UPSTREAM_URL: "http://127.0.0.1:1" });
    const attempt = (username: string) => (): Promise<Response> =>
      fetch(`${fresh.adminUrl}/api/login`, {
        method: "POST",
        headers: json,
        body: JSON.stringify({ username, password: "wrong" }),
      });
    // The limit is ten attempts a minute, and starting the server used one.
    const [known, unknown] = await leastProcessorMs(4, attempt("admin"), attempt("nobody"));
    // The hash takes tens of milliseconds; without it a login takes one or two.
    expect(unknown / known).toBeWithin(1 / 3, 3);
  });

  test("of token comparison: the time does not depend on the position of the first difference", async () => {
    // So large that a comparison that stops early would be measurably faster.
    const secret = "x".repeat(8 * 1024 * 1024);
    const compare = (other: string) => (): Promise<boolean> => Promise.resolve(equalSecrets(secret, other));
    const [early, late] = await leastProcessorMs(7, compare(`y${secret.slice(1)}`), compare(`${secret.slice(1)}y`));
    expect(early / late).toBeWithin(0.25, 4);
  });
});
