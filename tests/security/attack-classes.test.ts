import { beforeEach, describe, expect, test } from "bun:test";
import { gzipSync } from "node:zlib";
import { startSimulator } from "../support/simulator/simulator.ts";
import { startProgramWithKey } from "../support/program-with-key.ts";
import { connectRaw } from "../support/raw-client.ts";
import { startTollgate } from "../support/tollgate.ts";
import { shared } from "../support/shared.ts";

const backend = shared(() => startSimulator());
const gate = shared(() => startTollgate({ PROXY_UPSTREAM_URL: backend.url, METRICS_TOKEN: "metrics-token" }));
beforeEach(() => backend.clear());

const withKey = (headers: Record<string, string> = {}, key = gate.key): RequestInit => ({
  headers: { "x-api-key": key, ...headers },
  redirect: "manual",
});

/** Sends exactly these bytes. @returns the status and the raw response */
async function raw(bytes: string): Promise<{ status: number; received: string }> {
  const client = await connectRaw(gate.url);
  client.send(bytes);
  const { status } = await client.head();
  await client.ended();
  client.close();
  return { status, received: client.received().toString() };
}

describe("keys:", () => {
  test("keys in logs or metrics: neither keys, valid or not, nor sessions and passwords appear there", async () => {
    const secrets = [
      gate.key,
      "a-wrong-key-of-a-stranger",
      gate.admin.cookie.slice("session=".length),
      gate.admin.csrfToken,
    ];
    for (const key of secrets.slice(0, 2)) {
      await fetch(`${gate.url}/v1/models?key=${key}`, withKey({ "x-simulate": "reset-before-head" }, key));
      await fetch(`${gate.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
      await fetch(`${gate.adminUrl}/api/gpu-stats`, { method: "POST", ...withKey({}, key) });
    }
    const metrics = await fetch(`${gate.adminUrl}/metrics`, { headers: { authorization: "Bearer metrics-token" } });
    const output = JSON.stringify(gate.log) + (await metrics.text());
    for (const secret of [...secrets, "correct horse battery staple"]) expect(output).not.toContain(secret);
    expect(output).toContain("tollgate_requests_total");
  });
});

describe("routing:", () => {
  test("an upstream chosen by a header: no header has an effect", async () => {
    using other = startSimulator();
    const { url } = other;
    const { host } = new URL(url);
    const names = [
      "x-upstream",
      "x-upstream-url",
      "x-target",
      "x-forwarded-host",
      "x-original-url",
      "x-rewrite-url",
      "x-portkey-custom-host",
      "x-base-url",
      "forwarded",
      "x-forwarded-server",
      "x-http-host-override",
    ];
    for (const name of names) {
      const value = name === "forwarded" ? `host=${host}` : name.endsWith("host") ? host : url;
      expect((await fetch(`${gate.url}/v1/anything`, withKey({ [name]: value }))).status).toBe(200);
    }
    expect(
      (await raw(`GET ${url}/v1/anything HTTP/1.1\r\nHost: ${host}\r\nx-api-key: ${gate.key}\r\n\r\n`)).status,
    ).toBe(200);
    expect(backend.requests()).toHaveLength(names.length + 1);
    expect(other.requests()).toEqual([]);
  });

  test("a second unguarded route: no spelling of a path reaches the backend without a key", async () => {
    const targets = [
      "/v1/models",
      "/v1//models",
      "//v1/models",
      "/V1/models",
      "/v1/models/",
      "/%76%31/models",
      "/v1%2fmodels",
      "/v1/./models",
      "/api/v1/models",
      "/proxy/v1/models",
      "/v1",
      "/v1/",
      "/health",
      "/metrics",
      "/api/v1/../../v1/models",
      "/v1\\models",
      "/v1;x/models",
      "http://h/v1/models",
      "/openai/v1/models",
      "/v2/models",
      "/v1/models?x-api-key=test",
      "/v1/models#x",
    ];
    for (const target of targets) {
      for (const method of ["GET", "POST", "OPTIONS", "HEAD"]) {
        const client = await connectRaw(gate.url);
        client.request(method, target);
        expect([target, (await client.head()).status]).not.toEqual([target, 500]);
        client.close();
      }
    }
    expect(backend.requests()).toEqual([]);
  });
});

describe("secrets:", () => {
  test.each(["SECRET_KEY", "ADMIN_PASSWORD", "METRICS_TOKEN"])(
    "empty secrets: an empty %s is treated as unset",
    async (name) => {
      await using empty = await startTollgate({
        [name === "ADMIN_PASSWORD" ? "METRICS_TOKEN" : name]: "",
        PROXY_UPSTREAM_URL: backend.url,
      });
      for (const authorization of ["Bearer ", "Bearer", "", "Bearer undefined", "Bearer null"]) {
        expect((await fetch(`${empty.adminUrl}/metrics`, { headers: { authorization } })).status).toBe(401);
        expect((await fetch(`${empty.url}/v1/models`, { headers: { authorization } })).status).toBe(401);
      }
    },
  );
});

describe("bodies:", () => {
  test("zip bombs in compressed responses are forwarded unchanged and affect neither memory nor other clients", async () => {
    const bomb = gzipSync(Buffer.alloc(200 * 1024 * 1024, "["));
    expect(bomb.length).toBeLessThan(300_000);
    // A process of its own: in this one, whose heap is large after many tests, the collector lets as much garbage gather.
    const program = await startProgramWithKey(backend.url);
    const headers = { "x-api-key": program.key };
    const before = program.rssBytes();
    let peak = before;
    const watch = setInterval(() => (peak = Math.max(peak, program.rssBytes())), 5);
    const passing = fetch(`${program.url}/v1/echo`, {
      method: "PUT",
      headers: { ...headers, "content-type": "application/json", "x-simulate": "header=content-encoding: gzip" },
      body: bomb,
      decompress: false,
    });
    for (let round = 0; round < 5; round++) {
      expect((await fetch(`${program.url}/v1/models`, { headers })).status).toBe(200);
    }
    expect(Buffer.from(await (await passing).arrayBuffer()).equals(bomb)).toBe(true);
    clearInterval(watch);
    await program.stop();
    expect(peak - before).toBeLessThan(100 * 1024 * 1024);
  });

  test("prototype pollution by JSON bodies: names such as __proto__ are plain data", async () => {
    const body =
      '{"model":"m","__proto__":{"is_active":true,"polluted":1},"constructor":{"prototype":{"polluted":1}},"messages":[{"role":"user","content":"Hi"}],"chat_template_kwargs":{"__proto__":{"polluted":1}}}';
    const response = await fetch(`${gate.url}/v1/echo`, {
      method: "POST",
      ...withKey({ "content-type": "application/json" }),
      body,
    });
    expect(await response.text()).toBe(body);
    for (const json of ['{"__proto__":{"name":"x"}}', '{"constructor":{"prototype":{"polluted":1}},"name":""}']) {
      const created = await fetch(`${gate.adminUrl}/api/keys`, {
        method: "POST",
        headers: {
          cookie: gate.admin.cookie,
          "x-csrf-token": gate.admin.csrfToken,
          "content-type": "application/json",
        },
        body: json,
      });
      expect(created.status).toBe(400);
    }
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
    expect(({} as Record<string, unknown>)["name"]).toBeUndefined();
  });
});

describe("headers and logs:", () => {
  test("header injection by CR/LF: an encoded line end stays encoded, in the target and in the response", async () => {
    const target = "/v1/anything%0d%0aX-Evil:%201%0d%0a%0d%0aGET%20/v1/evil?q=%0d%0aX-Evil:1";
    const { received } = await raw(`GET ${target} HTTP/1.1\r\nHost: h\r\nx-api-key: ${gate.key}\r\n\r\n`);
    const seen = await backend.nextRequest();
    expect([seen.target, seen.header("x-evil")]).toEqual([target, undefined]);
    expect(received.split("\r\n\r\n")[0]).not.toMatch(/x-evil/i);
    for (const control of ["\r", "\n", "\0"]) {
      const { status } = await raw(
        `GET /v1/anything HTTP/1.1\r\nHost: h\r\nx-api-key: ${gate.key}\r\nX-A: a${control}X-Evil: 1\r\n\r\n`,
      );
      // A lone line feed ends a line (RFC 9112 section 2.2), so the rest is a header of the client.
      expect(status === 400 || control === "\n").toBe(true);
    }
    const page = await raw("GET /console%0d%0aSet-Cookie:%20session=evil HTTP/1.1\r\nHost: h\r\n\r\n");
    expect(page.received).not.toMatch(/^set-cookie/im);
  });
});
