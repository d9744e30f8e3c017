// What comes in: the path guard (here), the API key, the limits and models that it may use, the body, CORS, and what
// the log and the choice of a backend get to know of a request.
//
// It keeps true: a path with `..` gets no further than this guard. A step takes what it needs as arguments, sends
// nothing, and refuses by throwing a ProxyError. Bodies have a design of their own (`body.ts`), and so have the budget
// for those that are held and the least pace of slow ones (`body-budget-and-pace.ts`). What limits say is in `limit-refusals.ts`.

import { findCredential } from "../../domain/credential.ts";
import { type KeyRules, matchesGlob } from "../../domain/keys.ts";
import { hasLimit, tokenLimits } from "../../domain/limits.ts";
import { ProxyError } from "../errors.ts";

/** Segments below `/v1/` that the guard can see; longer paths are refused. */
const maxSegments = 64;
/**
 * Up to here a path may also hold empty segments (`//`, a trailing slash); no API goes as deep. A pattern costs 4 KB and
 * 20 µs at start, and each segment more here adds a third to their number.
 */
const maxSegmentsWithEmpty = 8;
const maxEmptySegments = 2;

export type Handler = (request: Request) => Response | Promise<Response>;
type NativeHandler = (request: Bun.BunRequest) => Response | Promise<Response>;

/** What `Bun.serve` takes. */
export interface GuardedRoutes {
  routes: Record<string, NativeHandler>;
  fetch: Handler;
}

interface Guarded {
  /** Responds below `/v1/`. */
  handle: Handler;
  /** Responds to all other paths. */
  others: Handler;
  refuse: Handler;
}

/**
 * The path guard: `refuse` responds to every path below `/v1/` that holds `..`.
 *
 * Bun normalises dot segments away before `request.url` can be read; only the parameters of its native routes hold the
 * segments as they came, and a parameter never matches an empty segment, so there is a pattern for each arrangement (Bun
 * 1.4.5). Remove the patterns when Bun exposes a request's raw target.
 */
export function guardPaths({ handle, others, refuse }: Guarded): GuardedRoutes {
  const guard: NativeHandler = (request) => (holdsDotDot(request) ? refuse : handle)(request);
  const routes = Object.fromEntries(guardedPatterns().map((pattern) => [pattern, guard]));
  // Bun reads `\` as `/`, but only after its routes have matched.
  const guardBackslash: NativeHandler = (request) => {
    const first = String(Object.values(request.params)[0]);
    return (/^v1\\/i.test(first) && hasDotDot(first) ? refuse : others)(request);
  };
  return {
    // A path that no pattern matches cannot be checked.
    routes: { ...routes, "/v1/*": refuse, "/:first": guardBackslash },
    // A URL that is below `/v1/` but came past the patterns was only normalised into it.
    fetch: (request) => (isBelowV1(request.url) ? refuse(request) : others(request)),
  };
}

/** Patterns that together match every path below `/v1/` that may pass. */
export function guardedPatterns(): string[] {
  const patterns: string[] = [];
  const extend = (segments: readonly string[], empty: number): void => {
    if (segments.length > 0) patterns.push(`/v1/${segments.join("/")}`);
    if (segments.length === maxSegmentsWithEmpty) return;
    extend([...segments, `:s${segments.length}`], empty);
    if (empty < maxEmptySegments) extend([...segments, ""], empty + 1);
  };
  extend([], 0);
  for (let length = 1; length <= maxSegments; length++) {
    const segments = Array.from({ length }, (_, index) => `:s${index}`).join("/");
    if (length > maxSegmentsWithEmpty) patterns.push(`/v1/${segments}`);
    // A base URL with a slash at its end.
    patterns.push(`//v1/${segments}`);
  }
  return patterns;
}

/**
 * Where a `%` encodes nothing, Bun's parameters have U+FFFD for it and the two characters after it (1.4.5), so that its URL
 * has to tell what these were, unless a backslash may be among them: then dot segments are gone from that too.
 * Remove with the patterns.
 */
function holdsDotDot({ params, url }: Bun.BunRequest): boolean {
  let isUnclear = false;
  for (const segment of Object.values(params)) {
    if (hasDotDot(segment)) return true;
    if (!segment.includes("\ufffd")) continue;
    if (/\\|\.$/.test(segment)) return true;
    isUnclear = true;
  }
  return isUnclear && hasDotDot(withoutQuery(findPathAndQuery(url) ?? ".."));
}

/** No honest client encodes a path more often than this. */
const maxDecodings = 8;

/** Whether a segment holds `..`, plain or percent-encoded, however often encoded. */
export function hasDotDot(segment: string): boolean {
  let text = segment;
  for (let decodings = 0; decodings <= maxDecodings; decodings++) {
    if (text.includes("..")) return true;
    if (!text.includes("%")) return false;
    const decoded = decodedOnce(text);
    if (decoded === text) return false;
    text = decoded;
  }
  return true;
}

/** Also `%u002e`: IIS and its like read it, though it is in no standard. */
const decodedOnce = (text: string): string =>
  text.replace(/%(?:u00)?([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));

function isBelowV1(url: string): boolean {
  return /^(?:https?:\/\/[^/]*)?\/+v1\//.test(url);
}

const methods = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);

/**
 * The path that a request asks for, percent-encoding as it came.
 * @param pathAndQuery empty if the host is invalid
 * @throws ProxyError if the host is malformed, the length stands twice, the method is unknown, or a WebSocket is wanted
 */
export function readTarget(request: Request, pathAndQuery: string): string {
  if (pathAndQuery === "" || !isHost(request.headers.get("host"))) throw new ProxyError("invalid_host");
  if (!pathAndQuery.startsWith("/v1/")) {
    throw new ProxyError(isPathWithoutV1(request) ? "path_without_v1" : "not_found");
  }
  // The same length sent twice arrives as `5, 5`, which `fetch` cannot send (Bun 1.4.5).
  if (request.headers.get("content-length")?.includes(",") === true) throw new ProxyError("invalid_request");
  if (!methods.has(request.method)) throw new ProxyError("method_not_allowed");
  // Other upgrades may be ignored: Java's client offers HTTP/2 with each request.
  const upgrade = request.headers.get("upgrade");
  if (upgrade?.toLowerCase().includes("websocket") === true) throw new ProxyError("upgrade_not_supported");
  return withoutQuery(pathAndQuery);
}

/** An unreserved character (RFC 3986 section 2.3), `#`, or `%u0063`: which path it is would depend on who reads it. */
const needlesslyEncoded = /%(?:2[3de]|3\d|[46][1-9a-f]|[57][\da]|5f|7e|u)/i;
const needlesslyEncodedText =
  "With this API key, the path must not percent-encode letters, digits, '-', '.', '_', '~' or '#'.";

/**
 * Refuses a needlessly encoded path of a key with limits of tokens or models.
 *
 * Matches globs with the path as a lenient backend may read it: decoded until it stays the same, without empty segments,
 * dots and `;` parameters. Closes in any case of letters; opens in the given one alone.
 * @param closed for all keys
 * @throws ProxyError `invalid_path` if it is encoded so or cannot be decoded, `not_found` if it is closed,
 * `path_not_allowed` if the key may not use it
 */
export function requireOpenPath(path: string, closed: readonly string[], rules: KeyRules | null): void {
  const allowed = rules?.allowed_paths ?? null;
  // A batch names its requests in a file, which nobody holds to limits of tokens.
  const limitsTokens = rules !== null && hasLimit(rules, tokenLimits);
  if ((limitsTokens || (rules?.allowed_models ?? null) !== null) && needlesslyEncoded.test(path))
    throw new ProxyError("invalid_path", { message: needlesslyEncodedText });
  if (closed.length === 0 && allowed === null && !limitsTokens) return;
  const plain = plainPathOf(path);
  if (plain === undefined) {
    if (closed.length === 0 && allowed === null) return;
    throw new ProxyError("invalid_path", { message: "The path must be percent-encoded UTF-8, encoded once." });
  }
  const lower = plain.toLowerCase();
  if (closed.some((glob) => matchesGlob(glob.toLowerCase(), lower))) throw new ProxyError("not_found");
  if (allowed !== null && !allowed.some((glob) => matchesGlob(glob, plain))) throw new ProxyError("path_not_allowed");
  const namesBatches = allowed?.some((glob) => glob.startsWith("/v1/batches")) === true;
  if (limitsTokens && !namesBatches && /^\/v1\/batches(?:\/|$)/.test(lower)) {
    throw new ProxyError("path_not_allowed", {
      message: "A key with a limit of tokens may not use batches, unless its allowed paths name /v1/batches.",
    });
  }
}

/** Undefined if it cannot be decoded. */
function plainPathOf(path: string): string | undefined {
  // Nearly all.
  if (/^\/v1(?:\/(?!v1(?:\/|$))[\w-]+)+$/i.test(path)) return path;
  let text = path;
  for (let decodings = 0; text.includes("%"); decodings++) {
    if (decodings === maxDecodings) return undefined;
    try {
      text = decodeURIComponent(text);
    } catch {
      return undefined;
    }
  }
  const segments = text
    .split(/[/\\]/)
    .map((segment) => segment.replace(/;.*$/s, ""))
    .filter((segment) => segment !== "" && segment !== ".");
  return `/${segments.join("/")}`.replace(/^\/v1(?:\/v1(?=\/|$))+/i, "/v1");
}

/** The path for log and metrics: without its query, and with API keys masked that stand in it. */
export function loggedPath({ url, headers }: Request, pathAndQuery = findPathAndQuery(url)): string {
  const path = withoutQuery(pathAndQuery ?? url);
  const credential = findCredential(headers);
  // Nearly all, and to look is cheaper than to take it apart.
  if (!/%|[\da-f]{32}/i.test(path) && (credential === undefined || !path.includes(credential))) return path;
  const segments = path.split("/");
  for (const [index, segment] of segments.entries()) if (holdsKey(segment, credential)) segments[index] = "***";
  const masked = segments.join("/");
  // One with a slash in it.
  return credential?.includes("/") === true && holdsKey(masked, credential) ? "/***" : masked;
}

/** Shorter ones are only looked for as a whole segment: they may be a part of any word. */
const minKeyLength = 16;

/** Whether a text has the client's own key in it, or the form of a generated one, 32 hexadecimal digits, however often encoded. */
function holdsKey(text: string, credential: string | undefined): boolean {
  let plain = text;
  for (let decodings = 0; decodings <= maxDecodings; decodings++) {
    // Ids of responses and files have these digits behind a prefix.
    if (/(?<![\w-])[\da-f]{32}(?![\w-])/i.test(plain)) return true;
    if (credential !== undefined && credential.length >= minKeyLength && plain.includes(credential)) return true;
    if (plain === credential && plain !== "v1") return true;
    const decoded = decodedOnce(plain);
    if (decoded === plain) return false;
    plain = decoded;
  }
  return true;
}

const pathsOfApi =
  /^\/(?:chat\/completions|completions|embeddings|messages|responses|models|moderations|audio|images|files|batches|(?:v2\/)?rerank|score|classify|pooling|tokenize|detokenize|generate|invocations)(?:[/?]|$)/;

/** Whether a client meant the API, but its base URL lacks `/v1`. Browsers send no credential, so pages stay pages. */
export function isPathWithoutV1({ method, headers, url }: Request): boolean {
  const pathAndQuery = findPathAndQuery(url) ?? "";
  if (!pathsOfApi.test(pathAndQuery)) return false;
  return method === "POST" || findCredential(headers) !== undefined;
}

/**
 * Path and query of a request's URL as they came, less what stands in front of the last `v1` at their beginning, empty
 * segments or `/v1` once more, which is a mistake in a base URL, and less a fragment, which no target may have (RFC 9112 section 3.2): `fetch` drops it, so that the backend would get another path than the one that was
 * checked. Undefined if an invalid Host made the URL relative. Remove that when `request.url` is absolute for an invalid
 * Host (Bun 1.4.5).
 */
export function findPathAndQuery(url: string): string | undefined {
  if (!url.startsWith("http")) return undefined;
  const start = url.indexOf("/", url.indexOf("://") + 3);
  if (start === -1) return undefined;
  const end = url.indexOf("#", start);
  const pathAndQuery = end === -1 ? url.slice(start) : url.slice(start, end);
  return pathAndQuery.replace(/^(?:\/+v1)*\/*(?=\/v1(?:[/?]|$))/, "");
}

/** Whether a Host header is a name or an address, with or without a port (RFC 9110 section 7.2). */
export function isHost(host: string | null): boolean {
  if (host === null) return false;
  const [, port] = /^(?:\[[\da-f:.]+\]|[\w.~!$&'()*+,;=-]+)(?::(\d{1,5}))?$/i.exec(host) ?? [undefined, "none"];
  return port === undefined || Number(port) <= 65_535;
}

function withoutQuery(pathAndQuery: string): string {
  const query = pathAndQuery.indexOf("?");
  return query === -1 ? pathAndQuery : pathAndQuery.slice(0, query);
}
