import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { brotliCompressSync, brotliDecompressSync, gunzipSync } from "node:zlib";
import { consoleRoutes } from "../../src/server/console-files.ts";
import { createTempFolder, type TempFolder } from "../support/temp-folder.ts";

const script = "export const response = 42;\n".repeat(20);
const scriptPath = "/assets/index-a1b2c3.js";

let folder: TempFolder;
let server: Bun.Server<undefined>;

beforeAll(() => {
  folder = createTempFolder();
  mkdirSync(folder.file("assets"));
  const compressed = { "": (text: string) => text, ".br": brotli, ".gz": Bun.gzipSync };
  for (const [name, text] of [
    ["index.html", "<!doctype html><title>Tollgate</title>"],
    [scriptPath.slice(1), script],
  ] as const) {
    for (const [suffix, compress] of Object.entries(compressed))
      writeFileSync(folder.file(name + suffix), compress(text));
  }
  writeFileSync(folder.file("theme.js"), "// small\n");
  writeFileSync(folder.file("secret.env"), "no");
  server = serve(folder.path);
});
afterAll(async () => {
  await server.stop(true);
  folder.remove();
});

const brotli = (text: string): Uint8Array => new Uint8Array(brotliCompressSync(text));

function serve(path: string): Bun.Server<undefined> {
  const app = consoleRoutes(path);
  return Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: (request) => app.fetch(request) });
}

/** Does not decompress, so that the tests see the bytes that were sent. */
const get = (path: string, headers: Record<string, string> = {}, method = "GET"): Promise<Response> =>
  fetch(`http://127.0.0.1:${server.port}${path}`, {
    method,
    headers: { "accept-encoding": "", ...headers },
    decompress: false,
  });

describe("the page", () => {
  test.each(["/", "/keys", "/usage?range=7d", "/gpus", "/nothing/of/the/kind", "/index.html"])(
    "is served at %s",
    async (path) => {
      const response = await get(path);
      expect(response.status).toBe(200);
      expect(response.headers.get("content-type")).toBe("text/html; charset=utf-8");
      expect(response.headers.get("cache-control")).toBe("no-cache");
      expect(await response.text()).toContain("<title>Tollgate</title>");
    },
  );

  test("is not sent again if the client has it, and is sent if the client has another version", async () => {
    const etag = (await get("/")).headers.get("etag") ?? "";
    for (const tag of [etag, `W/${etag}`, `"other", ${etag}`, "*"]) {
      const again = await get("/keys", { "if-none-match": tag });
      expect([tag, again.status, await again.text()]).toEqual([tag, 304, ""]);
      expect(again.headers.get("etag")).toBe(etag);
    }
    expect((await get("/", { "if-none-match": '"other"' })).status).toBe(200);
  });

  test("has another entity tag in each encoding", async () => {
    const tags = await Promise.all(
      ["", "br", "gzip"].map(async (encoding) => (await get("/", { "accept-encoding": encoding })).headers.get("etag")),
    );
    expect(new Set(tags).size).toBe(3);
  });
});

describe("an asset", () => {
  test("is cached for a year, since its name depends on its content", async () => {
    const response = await get(scriptPath);
    expect(response.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
    expect(response.headers.get("content-type")).toBe("text/javascript; charset=utf-8");
    expect(await response.text()).toBe(script);
  });

  test.each([
    ["br", "br"],
    ["gzip", "gzip"],
    ["gzip, deflate, br, zstd", "br"],
    ["GZIP", "gzip"],
    ["br;q=0.5, gzip;q=0.9", "br"],
    ["br;q=0, gzip", "gzip"],
    ["br;q=0, gzip;q=0", null],
    ["br; q = 0 , gzip", "br"],
    ["*", "br"],
    ["*;q=0.1, gzip;q=0", "br"],
    ["identity", null],
    ["identity;q=1, br;q=0.5", "br"],
    ["identity;q=0", null],
    ["deflate", null],
    ["", null],
    [";;;,,q=1", null],
  ])("is sent for Accept-Encoding %p as %p", async (accepted, encoding) => {
    const response = await get(scriptPath, { "accept-encoding": accepted });
    expect(response.status).toBe(200);
    expect(response.headers.get("content-encoding")).toBe(encoding);
    expect(response.headers.get("vary")).toBe("accept-encoding");
    const bytes = new Uint8Array(await response.arrayBuffer());
    const plain = encoding === "br" ? brotliDecompressSync(bytes) : encoding === "gzip" ? gunzipSync(bytes) : bytes;
    expect(new TextDecoder().decode(plain)).toBe(script);
  });

  test("without a compressed form is sent uncompressed", async () => {
    const response = await get("/theme.js", { "accept-encoding": "br, gzip" });
    expect(response.headers.get("content-encoding")).toBeNull();
    expect(response.headers.get("cache-control")).toBe("no-cache");
    expect(await response.text()).toBe("// small\n");
  });

  test("responds to HEAD with the headers of GET and no body", async () => {
    const head = await get(scriptPath, { "accept-encoding": "gzip" }, "HEAD");
    const whole = await get(scriptPath, { "accept-encoding": "gzip" });
    expect(head.status).toBe(200);
    for (const name of ["etag", "content-encoding", "content-type", "content-length"]) {
      expect([name, head.headers.get(name)]).toEqual([name, whole.headers.get(name)]);
    }
    expect(await head.text()).toBe("");
  });
});

test.each([
  "/assets/index-000000.js",
  "/assets/",
  "/assets/nothing",
  "/favicon.ico",
  "/secret.env",
  `${scriptPath}.br`,
  "/index.html.gz",
  "/assets/..%2f..%2fpackage.json",
  "/..%2fpackage.json",
  "/%2e%2e/package.json",
  "/assets/%2e%2e/%2e%2e/package.json",
  "/constructor.js",
  "/__proto__.html",
])("%s is not found", async (path) => {
  const response = await get(path);
  expect([path, response.status]).toEqual([path, 404]);
  expect(await response.text()).toBe("Not found\n");
});

test.each(["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])(
  "%s is refused with the methods that exist",
  async (method) => {
    const response = await get("/", {}, method);
    expect([response.status, response.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
  },
);

test.each(["/", scriptPath, "/theme.js", "/missing.js"])("%s has every security header", async (path) => {
  const { headers } = await get(path);
  const policy = headers.get("content-security-policy") ?? "";
  expect(policy).toStartWith("default-src 'none'; script-src 'self'; style-src 'self';");
  expect(policy).toContain("frame-ancestors 'none'");
  expect(policy).not.toContain("unsafe");
  expect(headers.get("x-content-type-options")).toBe("nosniff");
  expect(headers.get("x-frame-options")).toBe("DENY");
  expect(headers.get("referrer-policy")).toBe("no-referrer");
  expect(headers.get("cross-origin-opener-policy")).toBe("same-origin");
  const permissions = headers.get("permissions-policy") ?? "";
  for (const feature of ["camera", "microphone", "geolocation", "usb"]) expect(permissions).toContain(`${feature}=()`);
  // Copies a new key.
  expect(permissions).not.toContain("clipboard");
});

test("a rebuild does not change what a running server sends", async () => {
  using dist = createTempFolder();
  mkdirSync(dist.file("assets"));
  writeFileSync(dist.file("index.html"), "old page");
  writeFileSync(dist.file("assets/old.js"), "old");
  const running = serve(dist.path);
  const text = async (path: string) => (await fetch(`http://127.0.0.1:${running.port}${path}`)).text();
  writeFileSync(dist.file("index.html"), "new page");
  rmSync(dist.file("assets/old.js"));
  expect([await text("/"), await text("/assets/old.js")]).toEqual(["old page", "old"]);
  await running.stop(true);
});

test("without a built console, a page explains how to build it, and assets are not found", async () => {
  using empty = createTempFolder();
  const bare = serve(empty.file("dist"));
  const page = await fetch(`http://127.0.0.1:${bare.port}/keys`);
  expect(page.status).toBe(503);
  expect(page.headers.get("content-type")).toStartWith("text/plain");
  expect(await page.text()).toContain("bun run build:console");
  expect((await fetch(`http://127.0.0.1:${bare.port}/assets/x.js`)).status).toBe(404);
  await bare.stop(true);
});
