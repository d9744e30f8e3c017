import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { brotliCompressSync, brotliDecompressSync, gunzipSync } from "node:zlib";
import { consoleRoutes } from "../src/console-files.ts";
import { createTempFolder, type TempFolder } from "./support/temp-folder.ts";

const script = "export const answer = 42;\n".repeat(20);
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

/** Undecoded, so that the tests see what went over the wire. */
const get = (path: string, headers: Record<string, string> = {}, method = "GET"): Promise<Response> =>
  fetch(`http://127.0.0.1:${server.port}${path}`, {
    method,
    headers: { "accept-encoding": "", ...headers },
    decompress: false,
  });

describe("the page", () => {
  test.each(["/", "/keys", "/usage?range=7d", "/gpus", "/nothing/of/the/kind", "/index.html"])(
    "is the answer at %s",
    async (path) => {
      const answer = await get(path);
      expect(answer.status).toBe(200);
      expect(answer.headers.get("content-type")).toBe("text/html; charset=utf-8");
      expect(answer.headers.get("cache-control")).toBe("no-cache");
      expect(await answer.text()).toContain("<title>Tollgate</title>");
    },
  );

  test("is not sent again to who has it, and is to who has another", async () => {
    const etag = (await get("/")).headers.get("etag") ?? "";
    for (const tag of [etag, `W/${etag}`, `"other", ${etag}`, "*"]) {
      const again = await get("/keys", { "if-none-match": tag });
      expect([tag, again.status, await again.text()]).toEqual([tag, 304, ""]);
      expect(again.headers.get("etag")).toBe(etag);
    }
    expect((await get("/", { "if-none-match": '"other"' })).status).toBe(200);
  });

  test("has another tag in each encoding, as each is another representation", async () => {
    const tags = await Promise.all(
      ["", "br", "gzip"].map(async (encoding) => (await get("/", { "accept-encoding": encoding })).headers.get("etag")),
    );
    expect(new Set(tags).size).toBe(3);
  });
});

describe("an asset", () => {
  test("is kept for ever, since its name holds its content", async () => {
    const answer = await get(scriptPath);
    expect(answer.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
    expect(answer.headers.get("content-type")).toBe("text/javascript; charset=utf-8");
    expect(await answer.text()).toBe(script);
  });

  test.each([
    ["br", "br"],
    ["gzip", "gzip"],
    ["gzip, deflate, br, zstd", "br"],
    ["GZIP", "gzip"],
    ["br;q=0.5, gzip;q=0.9", "gzip"],
    ["br;q=0, gzip", "gzip"],
    ["br;q=0, gzip;q=0", null],
    ["br; q = 0 , gzip", "br"],
    ["*", "br"],
    ["*;q=0.1, gzip;q=0.2", "gzip"],
    ["identity", null],
    ["identity;q=1, br;q=0.5", null],
    ["identity;q=0", null],
    ["deflate", null],
    ["", null],
    [";;;,,q=1", null],
  ])("for Accept-Encoding %p goes out as %p", async (accepted, encoding) => {
    const answer = await get(scriptPath, { "accept-encoding": accepted });
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-encoding")).toBe(encoding);
    expect(answer.headers.get("vary")).toBe("accept-encoding");
    const bytes = new Uint8Array(await answer.arrayBuffer());
    const plain = encoding === "br" ? brotliDecompressSync(bytes) : encoding === "gzip" ? gunzipSync(bytes) : bytes;
    expect(new TextDecoder().decode(plain)).toBe(script);
  });

  test("without a compressed form goes out plain", async () => {
    const answer = await get("/theme.js", { "accept-encoding": "br, gzip" });
    expect(answer.headers.get("content-encoding")).toBeNull();
    expect(answer.headers.get("cache-control")).toBe("no-cache");
    expect(await answer.text()).toBe("// small\n");
  });

  test("answers HEAD with what GET would say, and no body", async () => {
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
])("nothing is found at %s", async (path) => {
  const answer = await get(path);
  expect([path, answer.status]).toEqual([path, 404]);
  expect(await answer.text()).toBe("Not found\n");
});

test.each(["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])(
  "%s is refused with the verbs that there are",
  async (method) => {
    const answer = await get("/", {}, method);
    expect([answer.status, answer.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
  },
);

test.each(["/", scriptPath, "/theme.js", "/missing.js"])("%s carries every guard", async (path) => {
  const { headers } = await get(path);
  const policy = headers.get("content-security-policy") ?? "";
  expect(policy).toStartWith("default-src 'none'; script-src 'self'; style-src 'self';");
  expect(policy).toContain("frame-ancestors 'none'");
  expect(policy).not.toContain("unsafe");
  expect(headers.get("x-content-type-options")).toBe("nosniff");
  expect(headers.get("x-frame-options")).toBe("DENY");
  expect(headers.get("referrer-policy")).toBe("no-referrer");
});

test("where the console was not built, a page says how to, and assets are not found", async () => {
  using empty = createTempFolder();
  const bare = serve(empty.file("dist"));
  const page = await fetch(`http://127.0.0.1:${bare.port}/keys`);
  expect(page.status).toBe(503);
  expect(page.headers.get("content-type")).toStartWith("text/plain");
  expect(await page.text()).toContain("bun run build:console");
  expect((await fetch(`http://127.0.0.1:${bare.port}/assets/x.js`)).status).toBe(404);
  await bare.stop(true);
});
