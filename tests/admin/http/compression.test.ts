import { beforeAll, describe, expect, test } from "bun:test";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { acceptedEncoding } from "../../../src/admin/http/compression.ts";
import { startAdmin } from "../support/admin-server.ts";
import { connectRaw } from "../../support/raw-client.ts";
import { shared } from "../../support/shared.ts";

const admin = shared(() => startAdmin());
const owner = shared(() => admin.login());
beforeAll(async () => {
  const minute = Math.floor(admin.time.now / 60_000);
  for (let n = 0; n < 100; n++) {
    const { id } = await admin.createKey(`key ${n} 한글`);
    const sums = { requestCount: n, inputTokens: n * 1000, outputTokens: n * 10 };
    await admin.store.usage.add([{ keyId: id, minute, lastClosedAt: admin.time.now, ...sums }]);
  }
});

interface Received {
  headers: Headers;
  bytes: Uint8Array;
}

async function get(path: string, acceptEncoding: string, method = "GET"): Promise<Received> {
  const response = await fetch(admin.origin + path, {
    method,
    decompress: false,
    headers: { cookie: owner.cookie, "accept-encoding": acceptEncoding },
  });
  return { headers: response.headers, bytes: await response.bytes() };
}

const large = [
  "/api/keys",
  "/api/usage/daily",
  "/api/usage/history",
  "/api/usage/chart",
  "/api/usage/costs?by=key_model",
  "/api/openapi.json",
];

test.each(large)("%s is compressed for a client that accepts it, with the same content and headers", async (path) => {
  const plain = await get(path, "identity");
  expect(plain.headers.get("content-encoding")).toBeNull();
  for (const [encoding, decompress] of [
    ["gzip", gunzipSync],
    ["br", brotliDecompressSync],
  ] as const) {
    const compressed = await get(path, encoding);
    expect(compressed.headers.get("content-encoding")).toBe(encoding);
    expect(compressed.headers.get("vary")).toBe("accept-encoding");
    expect(JSON.parse(decompress(compressed.bytes).toString())).toEqual(
      JSON.parse(Buffer.from(plain.bytes).toString()),
    );
    expect(compressed.bytes.length).toBeLessThan(plain.bytes.length / 2);
    for (const name of ["content-type", "cache-control", "x-content-type-options"]) {
      expect(compressed.headers.get(name)).toBe(plain.headers.get(name));
    }
  }
});

test.each(["/api/me", "/healthz", "/api/usage/total", "/api/overview", "/api/unknown"])(
  "%s is never compressed or is too short for it",
  async (path) => {
    expect((await get(path, "gzip")).headers.get("content-encoding")).toBeNull();
  },
);

test("responses to HEAD, to a login and to changes are not compressed", async () => {
  for (const path of large) expect((await get(path, "gzip", "HEAD")).headers.get("content-encoding")).toBeNull();
  const headers = { "content-type": "application/json", "accept-encoding": "gzip" };
  const login = await fetch(`${admin.origin}/api/login`, {
    method: "POST",
    headers,
    body: JSON.stringify({ username: "admin", password: "correct horse battery staple" }),
  });
  expect([login.status, login.headers.get("content-encoding")]).toEqual([200, null]);
  const created = await fetch(`${admin.origin}/api/keys`, {
    method: "POST",
    headers: { ...headers, cookie: owner.cookie, "x-csrf-token": owner.csrf },
    body: JSON.stringify({ name: "x", key: "k".repeat(512) }),
  });
  expect([created.status, created.headers.get("content-encoding")]).toEqual([201, null]);
});

test("an error is not compressed and keeps its status", async () => {
  const response = await fetch(`${admin.origin}/api/usage/daily?days=${"x".repeat(4000)}`, {
    headers: { cookie: owner.cookie, "accept-encoding": "gzip" },
  });
  expect([response.status, response.headers.get("content-encoding")]).toEqual([400, null]);
});

/**
 * Waits until `count` stays the same for 1,000 ticks of the event loop. A server of this process that could still make
 * progress would have made some.
 */
async function untilSteady(count: () => number): Promise<void> {
  let last = count();
  for (let ticks = 0; ticks < 1000; ticks += 1) {
    await new Promise(setImmediate);
    if (count() !== last) ticks = 0;
    last = count();
  }
}

describe.each(["gzip", "br", "identity"])("a long response in the coding %s", (encoding) => {
  const chunkCount = 400;
  let read = 0;
  let released = Promise.withResolvers<void>();
  let failsAt = Number.POSITIVE_INFINITY;
  const streaming = shared(() =>
    startAdmin({
      store: (real) => ({
        ...real,
        usage: {
          ...real.usage,
          async *daily() {
            try {
              for (; read < chunkCount; read++) {
                if (read === failsAt) throw new Error("locked");
                // Digits that hardly compress.
                const digits = crypto.getRandomValues(new Uint8Array(48_000)).toBase64();
                yield Buffer.from(`${read === 0 ? "" : ","}"${digits}"`);
              }
            } finally {
              released.resolve();
            }
          },
        },
      }),
    }),
  );

  async function open(method = "GET"): Promise<Response> {
    read = 0;
    released = Promise.withResolvers<void>();
    const { cookie } = await streaming.login();
    const headers = { cookie, "accept-encoding": encoding };
    return fetch(`${streaming.origin}/api/usage/daily`, { method, headers });
  }

  test("arrives whole", async () => {
    expect(await (await open()).json()).toHaveLength(chunkCount);
  });

  test("is read as fast as the client takes it, and no further once the client has left", async () => {
    read = 0;
    released = Promise.withResolvers<void>();
    const { cookie } = await streaming.login();
    // Not fetch, which reads ahead without a bound if it is quick enough.
    const client = await connectRaw(streaming.origin, { keepBody: false });
    client.request("GET", "/api/usage/daily", { cookie, "accept-encoding": encoding });
    await client.head();
    client.pause();
    await untilSteady(() => read);
    expect(read).toBeLessThan(chunkCount);
    client.reset();
    await released.promise;
  });

  test("breaks off if a later part fails, so that half a list does not look complete", async () => {
    failsAt = 200;
    const response = await open();
    await expect(response.text()).rejects.toThrow();
    failsAt = Number.POSITIVE_INFINITY;
    expect(streaming.logged.join("")).toContain("locked");
  });

  test("is read no further than its first part for HEAD", async () => {
    await open("HEAD");
    await released.promise;
    expect(read).toBe(0);
  });
});

test.each([
  ["gzip", "gzip"],
  ["br, GZIP", "br"],
  ["gzip, deflate, br, zstd", "br"],
  ["br;q=0, gzip", "gzip"],
  ["br;q=0.1, gzip", "br"],
  ["*", "br"],
  ["br;q=0, *", "gzip"],
  ["gzip;q=0.1", "gzip"],
  ["gzip ; q=0", undefined],
  ["gzip;q=0, *", "br"],
  ["*;q=0", undefined],
  ["", undefined],
  ["br", "br"],
  ["identity", undefined],
  ["xgzip", undefined],
  ["gzip;q=x", undefined],
] as const)("accept-encoding %p allows %p", (header, expected) => {
  expect(acceptedEncoding(header)).toBe(expected);
});
