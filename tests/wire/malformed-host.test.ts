import { describe, expect, test } from "bun:test";
import { connectRaw } from "../support/raw-client.ts";
import { findFreePort } from "../support/free-port.ts";
import { startTollgate } from "../support/tollgate.ts";
import { shared } from "../support/shared.ts";

const malformed = ["", "a b", "a/b", "a@b", "h:99999", "h:65536", "h:x", "[::1", "[:]", "1.2.3.256", "a\r\nHost: b"];
const paths = ["/", "/keys", "/assets/none.js", "/api/me", "/api/none", "/healthz", "/metrics", "/models?x=1"];

describe.each([
  ["on one port", {}],
  ["on a port of its own", { ADMIN_PORT: String(findFreePort()) }],
])("a malformed Host to the admin side %s", (_, environment) => {
  const gate = shared(() => startTollgate({ PROXY_UPSTREAM_URL: "http://127.0.0.1:1", ...environment }));

  async function get(path: string, lines: string) {
    const client = await connectRaw(gate.adminUrl);
    client.send(`GET ${path} ${lines}\r\n\r\n`);
    const { status, headers } = await client.head();
    const text = await client.text();
    client.close();
    return { status, text, header: (name: string) => headers.find(([given]) => given.toLowerCase() === name)?.[1] };
  }

  test.each(malformed)("%j gets 400 on every path, and a line in the log", async (host) => {
    for (const path of paths) {
      const before = gate.log.length;
      const { status, text, header } = await get(path, `HTTP/1.1\r\nHost: ${host}`);
      expect([path, status, text]).toEqual([path, 400, '{"error":"The Host header is missing or malformed"}']);
      expect([header("content-type"), header("cache-control"), header("x-content-type-options")]).toEqual([
        expect.stringMatching(/^application\/json/),
        "no-store",
        "nosniff",
      ]);
      expect(gate.log.slice(before)).toMatchObject([{ level: "info", address: "127.0.0.1", path: path.split("?")[0] }]);
    }
  });

  test("which HTTP/1.0 may omit, gets the same", async () => {
    for (const path of paths) expect([path, (await get(path, "HTTP/1.0")).status]).toEqual([path, 400]);
  });

  test.each(["h", "h:65535", "127.0.0.1:8080", "[::1]:80", "gate.example.com"])("does not include %s", async (host) => {
    expect((await get("/healthz", `HTTP/1.1\r\nHost: ${host}`)).status).toBe(200);
    expect((await get("/keys", `HTTP/1.1\r\nHost: ${host}`)).status).toBeOneOf([200, 503]);
  });
});
