import { expectedShare } from "../domain/backends.ts";
import type { RequestRecord } from "../domain/requests.ts";
import { plainAddress } from "../domain/client-address.ts";
import { cachedTokensOf } from "../domain/usage.ts";

/** Headers that concern one connection only (RFC 9110 section 7.6.1). */
const hopByHop = [
  "connection",
  "keep-alive", // RFC 2068 section 19.7.1
  "proxy-connection", // never standard, but clients send it
  "te",
  "trailer", // Bun does not pass trailers on
  "transfer-encoding",
  "upgrade",
] as const;

const notForwarded: ReadonlySet<string> = new Set([
  ...hopByHop,
  "host", // fetch sets the upstream's
  "expect", // Bun has already responded to it
  "authorization", // the client's key is for us
  "x-api-key",
  "proxy-authorization",
  "cookie", // the console's session may be among them
  "x-tollgate-debug", // asks us, not the backend
  "x-conversation-id", // has llama.cpp go on when its client has left, and any key read, replace or end that by the id
]);

/** With those that are not forwarded, what no other spelling may stand for. */
const notShadowed: ReadonlySet<string> = new Set([
  ...notForwarded,
  "content-length", // fetch frames the body by it
  "content-type", // limits and models were applied to JSON in UTF-8
  "content-encoding", // the body may have been decoded
  "accept-encoding", // usage is read from plain bytes
  "x-request-id", // the id that our log has
  "forwarded", // a web server in front names the client in these, and replaces only the spelling that it knows
  "x-real-ip",
]);

const notReturned: ReadonlySet<string> = new Set([
  ...hopByHop,
  "proxy-authenticate", // concerns our hop, not the client's
  "x-sendfile", // has Apache and lighttpd send a file of theirs instead
  // What the console's origin may share, and what no backend may say for it:
  "clear-site-data", // logs its operator out
  "strict-transport-security", // closes plain HTTP for a year
  "alt-svc", // leads its later requests to another server
  "nel", // has browsers report its requests to others
  "report-to", // the same
  "service-worker-allowed", // lets a script from here take over all its pages
  "refresh", // leads away whoever opens it
]);

interface RequestHeaderOptions {
  /** The body is in none of the encodings that the client named, or no longer. */
  isDecoded: boolean;
  /** Limits and models were applied to the JSON object in the body, so the backend must not read it as anything else. */
  mustBeObject: boolean;
  /** Undefined if the client's body passes as it arrives, so that its length still holds. */
  contentLength: number | undefined;
  /** The address at the other end of the client's connection. */
  peerAddress: string | undefined;
  upstreamApiKey: string | undefined;
  requestId: string;
  /** Whether it names the key's user; undefined: none does. */
  isOfUser?: ((name: string) => boolean) | undefined;
}

export function upstreamRequestHeaders(
  incoming: Headers,
  { isDecoded, mustBeObject, contentLength, peerAddress, upstreamApiKey, requestId, isOfUser }: RequestHeaderOptions,
): Headers {
  const headers = new Headers(incoming);
  removeNamedByConnection(headers);
  for (const name of incoming.keys()) {
    // WSGI, CGI, Rack and PHP read `_` so. Other names with it pass: Codex sends `session_id`.
    const read = name.includes("_") ? name.replaceAll("_", "-") : name;
    const isForUs = read === name ? notForwarded.has(name) : notShadowed.has(read) || read.startsWith("x-forwarded-");
    if (isForUs || isOfUser?.(name) === true) headers.delete(name);
  }
  if (isDecoded) headers.delete("content-encoding");
  if (mustBeObject && !jsonInUtf8.test(headers.get("content-type") ?? "application/json"))
    headers.set("content-type", "application/json");
  if (contentLength !== undefined) headers.set("content-length", String(contentLength));
  // Usage is read from the response's bytes, so they should not arrive compressed.
  headers.set("accept-encoding", "identity");
  if (upstreamApiKey !== undefined) headers.set("authorization", `Bearer ${upstreamApiKey}`);
  if (peerAddress !== undefined) headers.append("x-forwarded-for", plainAddress(peerAddress) ?? peerAddress);
  headers.set("x-request-id", requestId);
  return headers;
}

/** LiteLLM would read a form, and other backends another charset, in which quotes stand elsewhere. */
const jsonInUtf8 = /^\s*application\/json\s*(?:;\s*charset="?utf-?8"?\s*)?$/i;

/** @param sharesOrigin the console has the origin of `/v1`: a backend's cookies could end or crowd out its session */
export function clientResponseHeaders(upstream: Headers, sharesOrigin: boolean): Headers {
  const headers = new Headers(upstream);
  removeNamedByConnection(headers);
  for (const name of upstream.keys()) {
    // nginx takes these as orders, and serves an internal file for `X-Accel-Redirect`.
    if (notReturned.has(name) || name.startsWith("x-accel-")) headers.delete(name);
  }
  if (sharesOrigin) headers.delete("set-cookie");
  if (headers.has("set-cookie")) dropSessionCookie(headers);
  headers.set("x-content-type-options", "nosniff");
  return headers;
}

/**
 * A backend's own address (RFC 9110 section 10.2.2) as its client sees it, relative to us: else the client would go past us.
 * @param target what the reference is relative to
 * @param base the backend's address and path prefix
 * @returns any other as it is
 */
export function addressForClient(reference: string, target: string, base: URL): string {
  const found = URL.parse(reference, target);
  if (found?.origin !== base.origin) return reference;
  const prefix = base.pathname.replace(/\/$/, "");
  const path = found.pathname.startsWith(`${prefix}/`) ? found.pathname.slice(prefix.length) : found.pathname;
  // Two slashes would name a host.
  return path.replace(/^\/+/, "/") + found.search + found.hash;
}

/** What is left of a key's limits. Of the same families, the backend's would speak of other limits. */
export function setLimitHeaders(headers: Headers, pairs: readonly (readonly [name: string, value: string])[]): void {
  if (pairs.length === 0) return;
  const names = [...headers.keys()];
  for (const name of names) if (limitFamilies.test(name)) headers.delete(name);
  for (const [name, value] of pairs) headers.set(name, value);
}

/** Codex reads families of any name, of which it needs the percent. */
const limitFamilies = /^(?:x-ratelimit-|anthropic-ratelimit-|x-codex[-_])|-(?:primary|secondary)-used-percent$/;

/** The console's is named so, and cookies know no ports: a backend must not end or replace it. */
function dropSessionCookie(headers: Headers): void {
  const cookies = headers.getSetCookie();
  headers.delete("set-cookie");
  for (const cookie of cookies) if (!/^\s*session\s*=/i.test(cookie)) headers.append("set-cookie", cookie);
}

/** `Connection` lists further headers that end at this hop. */
function removeNamedByConnection(headers: Headers): void {
  const named = headers.get("connection");
  if (named === null || /^(keep-alive|close)$/i.test(named)) return;
  for (const name of named.split(",")) {
    const token = name.trim();
    if (/^[\w!#$%&'*+.^`|~-]+$/.test(token)) headers.delete(token);
  }
}

interface WentTo {
  record: Pick<RequestRecord, "backend" | "reason" | "expectation">;
  sends: number;
  /** Undefined while its counts are not written. */
  written: Pick<RequestRecord, "usage"> | undefined;
}

/** Tells a client that asks where its request went, and nothing of what other keys have sent. */
export function addDebugHeaders(headers: Headers, { record, sends, written }: WentTo): void {
  const { backend, reason = "only", expectation } = record;
  if (backend === undefined) return;
  headers.set("x-tollgate-backend", backend);
  headers.set("x-tollgate-sends", String(sends));
  headers.set("x-tollgate-reason", reason === "prefix" ? "load" : reason);
  if (expectation !== undefined) {
    headers.set("x-tollgate-expected-cache", (expectation.isOwn ? expectedShare(expectation) : 0).toFixed(2));
  }
  // The head of a stream cannot wait for these.
  const cached = written?.usage === undefined ? 0 : cachedTokensOf(written.usage);
  if (cached > 0) headers.set("x-tollgate-cached-tokens", String(cached));
}
