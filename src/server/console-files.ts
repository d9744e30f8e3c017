import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Elysia } from "elysia";
import { acceptedEncoding, type Encoding } from "../admin/http/compression.ts";

/** One form of a file: as it is, or as the build compressed it. */
interface Form {
  encoding: Encoding | undefined;
  bytes: Uint8Array<ArrayBuffer>;
  etag: string;
}

/** The forms of each file by its path, the uncompressed one last. */
type Files = ReadonlyMap<string, readonly Form[]>;

const contentTypes: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
  txt: "text/plain; charset=utf-8",
  woff2: "font/woff2",
};

const suffixes = [
  ["br", ".br"],
  ["gzip", ".gz"],
  [undefined, ""],
] as const;

const securityHeaders: Readonly<Record<string, string>> = {
  // Nothing inline and nothing from other origins: HTML in a key's name could do nothing even if it were not escaped.
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; " +
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  // Browsers without frame-ancestors obey this.
  "x-frame-options": "DENY",
  // The console's addresses hold key ids and filters.
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
  // A page that opens the console, or is opened by it, gets no handle on its window. Over plain HTTP, browsers ignore it.
  "cross-origin-opener-policy": "same-origin",
  // The console copies keys to the clipboard and needs nothing else.
  "permissions-policy":
    "accelerometer=(), autoplay=(), camera=(), display-capture=(), encrypted-media=(), fullscreen=(), geolocation=(), " +
    "gyroscope=(), hid=(), magnetometer=(), microphone=(), midi=(), payment=(), publickey-credentials-get=(), " +
    "screen-wake-lock=(), serial=(), usb=(), xr-spatial-tracking=()",
};

/** From source, the folder that the build writes; in the compiled program, the copy embedded beside the modules. */
const builtConsole = Bun.isStandaloneExecutable
  ? join(import.meta.dir, "dist")
  : join(import.meta.dir, "../..", "console", "dist");

/**
 * Serves the built console: its files, compressed as the build left them, and the page at every other address that has
 * no extension. Reads the folder once: a request then reaches only what was there, never the disk, and a rebuild does
 * not mix with the version that is served.
 */
export function consoleRoutes(folder: string = builtConsole): Elysia {
  const files = readFiles(folder);
  const app = new Elysia();
  app.all("/*", ({ request }) => consoleResponse(files, request), { parse: "none", detail: { hide: true } });
  // The plain type keeps this route out of the console's client.
  return app;
}

function readFiles(folder: string): Files {
  if (!existsSync(join(folder, "index.html"))) return new Map();
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" });
  const served = names.filter((name) => Object.hasOwn(contentTypes, extensionOf(name)));
  return new Map(served.map((name) => [`/${name.replaceAll("\\", "/")}`, readForms(join(folder, name))]));
}

function readForms(file: string): Form[] {
  return suffixes.flatMap(([encoding, suffix]) => {
    if (!existsSync(file + suffix)) return [];
    const bytes = new Uint8Array(readFileSync(file + suffix));
    // A compressed form is another representation and needs its own tag (RFC 9110, section 8.8.3.3).
    return [{ encoding, bytes, etag: `"${Bun.hash(bytes).toString(36)}"` }];
  });
}

function consoleResponse(files: Files, request: Request): Response {
  if (request.method !== "GET" && request.method !== "HEAD")
    return textResponse(405, "Method not allowed\n", { allow: "GET, HEAD" });
  const { pathname } = new URL(request.url);
  const path = !files.has(pathname) && isPage(pathname) ? "/index.html" : pathname;
  const forms = files.get(path);
  if (forms !== undefined) return fileResponse(path, forms, request.headers);
  return files.size === 0 && isPage(pathname) ? textResponse(503, notBuilt) : textResponse(404, "Not found\n");
}

/** The console's own addresses have no extension. A missing file must not be replaced by the page. */
const isPage = (pathname: string): boolean => !pathname.startsWith("/assets/") && extensionOf(pathname) === "";

function fileResponse(path: string, forms: readonly Form[], request: Headers): Response {
  const encoding = acceptedEncoding(request.get("accept-encoding") ?? "");
  // A client that accepts none gets the uncompressed one, as RFC 9110 allows in section 12.5.3.
  const form = forms.find((one) => one.encoding === encoding) ?? forms.at(-1);
  if (form === undefined) return textResponse(404, "Not found\n");
  const headers = {
    ...securityHeaders,
    "content-type": contentTypes[extensionOf(path)] ?? "application/octet-stream",
    // The build names everything under assets by its content; browsers revalidate the other files each time.
    "cache-control": path.startsWith("/assets/") ? "public, max-age=31536000, immutable" : "no-cache",
    vary: "accept-encoding",
    etag: form.etag,
  };
  if (matches(form.etag, request.get("if-none-match"))) return new Response(null, { status: 304, headers });
  const compressed = form.encoding === undefined ? {} : { "content-encoding": form.encoding };
  return new Response(form.bytes, { headers: { ...headers, ...compressed } });
}

/** If-None-Match compares weakly (RFC 9110, section 13.1.2): proxies that recompress a response mark its tag as weak. */
function matches(etag: string, ifNoneMatch: string | null): boolean {
  const tags = ifNoneMatch?.split(",").map((tag) => tag.trim().replace(/^W\//, "")) ?? [];
  return tags.includes("*") || tags.includes(etag);
}

/** From source only: the compiled program has its console embedded. */
const notBuilt =
  "The console is not built. Run `bun run build:console` and restart Tollgate.\nThe API at /api and /v1 works without it.\n";

const textResponse = (status: number, text: string, headers: Record<string, string> = {}): Response =>
  new Response(text, { status, headers: { ...securityHeaders, "cache-control": "no-cache", ...headers } });

const extensionOf = (name: string): string => /\.([a-z0-9]+)$/i.exec(name)?.[1]?.toLowerCase() ?? "";
