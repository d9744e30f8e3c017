import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Elysia } from "elysia";

/** One file of the built console, ready to send. Forms are what the build wrote beside it. */
interface Asset {
  headers: Readonly<Record<string, string>>;
  forms: readonly Form[];
}

interface Form {
  encoding: "br" | "gzip" | "identity";
  bytes: Uint8Array<ArrayBuffer>;
  etag: string;
}

type Console = ReadonlyMap<string, Asset>;

const contentTypes: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
};

/** Best compression first: of what a client likes equally, the first is sent. */
const suffixes = [
  ["br", ".br"],
  ["gzip", ".gz"],
  ["identity", ""],
] as const;

const guards: Readonly<Record<string, string>> = {
  // Nothing inline and nothing from elsewhere: a key's name that slipped through as HTML could still do nothing.
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; " +
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  // For browsers that know no frame-ancestors.
  "x-frame-options": "DENY",
  // Addresses of the console hold key ids and filters.
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
};

/** From source the console is where its build puts it; in the compiled program it is embedded beside the modules. */
const builtConsole = Bun.isStandaloneExecutable
  ? join(import.meta.dir, "dist")
  : join(import.meta.dir, "..", "console", "dist");

/**
 * Serves the built console: the page at every address that is no file, and its files, compressed as the build left them.
 *
 * Not by `@elysiajs/static` (1.4.10): it sends neither the `.br` nor the `.gz` that lie beside a file, answers no HEAD,
 * and takes its entity tags from the plain bytes alone. Everything fits into memory, so a request never meets the disk,
 * and a path can only ever name what was read at the start.
 */
export function consoleRoutes(folder: string = builtConsole): Elysia {
  const built = readConsole(folder);
  const app = new Elysia();
  app.all("/*", ({ request }) => consoleResponse(built, request), { parse: "none" });
  // Typed as if it had no routes: the console's client is made from the type, and calls the API alone.
  return app;
}

function readConsole(folder: string): Console {
  if (!existsSync(join(folder, "index.html"))) return new Map();
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) =>
    Object.hasOwn(contentTypes, extensionOf(name)),
  );
  return new Map(names.map((name) => [`/${name.replaceAll("\\", "/")}`, readAsset(folder, name)]));
}

function readAsset(folder: string, name: string): Asset {
  const forms = suffixes.flatMap(([encoding, suffix]): Form[] => {
    const file = join(folder, name + suffix);
    if (!existsSync(file)) return [];
    const bytes = new Uint8Array(readFileSync(file));
    // Strong, and of the very bytes: a compressed form is another representation (RFC 9110, section 8.8.3.3).
    return [{ encoding, bytes, etag: `"${Bun.hash(bytes).toString(36)}"` }];
  });
  // The build names everything under assets by its content; what keeps its name is asked for again each time.
  const hashed = /^assets[/\\]/.test(name);
  return {
    forms,
    headers: {
      ...guards,
      "content-type": contentTypes[extensionOf(name)] ?? "application/octet-stream",
      "cache-control": hashed ? "public, max-age=31536000, immutable" : "no-cache",
      vary: "accept-encoding",
    },
  };
}

function consoleResponse(built: Console, request: Request): Response {
  if (request.method !== "GET" && request.method !== "HEAD") {
    return new Response("Method not allowed\n", { status: 405, headers: { ...guards, allow: "GET, HEAD" } });
  }
  const { pathname } = new URL(request.url);
  const asset = built.get(pathname) ?? (isPage(pathname) ? built.get("/index.html") : undefined);
  if (asset !== undefined) return assetResponse(asset, request);
  return built.size === 0 && isPage(pathname) ? notBuilt() : notFound();
}

/** The console's own addresses have no extension: a missing file must not be answered with a page. */
const isPage = (pathname: string): boolean => !pathname.startsWith("/assets/") && extensionOf(pathname) === "";

function assetResponse({ forms, headers }: Asset, request: Request): Response {
  const form = preferredForm(forms, request.headers.get("accept-encoding") ?? "");
  if (form === undefined) return notFound();
  const answer = { ...headers, etag: form.etag };
  if (isKnown(form.etag, request.headers.get("if-none-match")))
    return new Response(null, { status: 304, headers: answer });
  const encoded = form.encoding === "identity" ? answer : { ...answer, "content-encoding": form.encoding };
  return new Response(form.bytes, { headers: encoded });
}

/** RFC 9110, section 12.5.3. A client that refuses every form gets the plain one, as that section allows. */
function preferredForm(forms: readonly Form[], acceptEncoding: string): Form | undefined {
  const weights = encodingWeights(acceptEncoding);
  const any = weights.get("*");
  const weightOf = ({ encoding }: Form): number =>
    // Whoever does not mention it takes plain bytes, but likes any named encoding better.
    weights.get(encoding) ?? any ?? (encoding === "identity" ? 0.0001 : 0);
  const [best] = forms.toSorted((a, b) => weightOf(b) - weightOf(a));
  return best !== undefined && weightOf(best) > 0 ? best : forms.at(-1);
}

function encodingWeights(acceptEncoding: string): ReadonlyMap<string, number> {
  return new Map(
    acceptEncoding.split(",").map((item) => {
      const [name = "", ...parameters] = item.split(";").map((part) => part.trim().toLowerCase());
      const weight = parameters.find((parameter) => parameter.startsWith("q="));
      return [name, weight === undefined ? 1 : Number(weight.slice(2)) || 0];
    }),
  );
}

/** If-None-Match compares weakly (RFC 9110, section 13.1.2): proxies that recompress mark tags as weak. */
function isKnown(etag: string, ifNoneMatch: string | null): boolean {
  if (ifNoneMatch === null) return false;
  return ifNoneMatch.split(",").some((tag) => tag.trim() === "*" || tag.trim().replace(/^W\//, "") === etag);
}

const notFound = (): Response =>
  new Response("Not found\n", { status: 404, headers: { ...guards, "cache-control": "no-cache" } });

/** Only from source: the compiled program holds its console. */
const notBuilt = (): Response =>
  new Response(
    "The console is not built. Run `bun run build:console` and start Tollgate again.\nThe API at /api and /v1 works without it.\n",
    {
      status: 503,
      headers: { ...guards, "cache-control": "no-cache" },
    },
  );

const extensionOf = (name: string): string => /\.([a-z0-9]+)$/i.exec(name)?.[1]?.toLowerCase() ?? "";
