import { findCredential } from "../../domain/credentials.ts";
import { ProxyError } from "../errors.ts";

const methods = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);

/** What a request asks for, percent-encoding as it came. */
export interface Target {
  path: string;
  pathAndQuery: string;
}

/** @throws ProxyError if the host is malformed, the method unknown, or a WebSocket is wanted */
export function readTarget(request: Request): Target {
  const pathAndQuery = findPathAndQuery(request.url);
  if (pathAndQuery === undefined || !isHost(request.headers.get("host"))) throw new ProxyError("invalid_host");
  if (!pathAndQuery.startsWith("/v1/")) {
    throw new ProxyError(isPathWithoutV1(request) ? "path_without_v1" : "not_found");
  }
  if (!methods.has(request.method)) throw new ProxyError("method_not_allowed");
  if (wantsWebSocket(request)) throw new ProxyError("upgrade_not_supported");
  return { path: withoutQuery(pathAndQuery), pathAndQuery };
}

/** The path for log and metrics: without its query, and with API keys masked that stand in it. */
export function loggedPath({ url, headers }: Request): string {
  const path = withoutQuery(findPathAndQuery(url) ?? url);
  const credential = findCredential(headers);
  const segments = path.split("/");
  if (!segments.some((segment) => isKey(segment, credential))) return path;
  return segments.map((segment) => (isKey(segment, credential) ? "***" : segment)).join("/");
}

/** The client's own key, or the form of a generated one: 32 hexadecimal digits. */
function isKey(segment: string, credential: string | undefined): boolean {
  if (/^[\da-f]{32}$/i.test(segment)) return true;
  return credential !== undefined && segment !== "v1" && (segment === credential || decoded(segment) === credential);
}

function decoded(segment: string): string {
  if (!segment.includes("%")) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** Whether a client meant the API, but its base URL lacks `/v1`. Browsers send no credential, so pages stay pages. */
export function isPathWithoutV1({ method, headers, url }: Request): boolean {
  const pathAndQuery = findPathAndQuery(url) ?? "";
  if (!/^\/(?:chat\/completions|completions|embeddings|messages|responses|models)(?:[/?]|$)/.test(pathAndQuery))
    return false;
  return method === "POST" || findCredential(headers) !== undefined;
}

/**
 * Path and query of a request's URL as they came, less empty segments in front of `v1`; undefined if an invalid Host made
 * the URL relative. Remove when `request.url` is absolute for an invalid Host (Bun 1.4.5).
 */
export function findPathAndQuery(url: string): string | undefined {
  if (!url.startsWith("http")) return undefined;
  const start = url.indexOf("/", url.indexOf("://") + 3);
  if (start === -1) return undefined;
  // A base URL with a slash at its end makes `//v1/…`.
  return url.slice(start).replace(/^\/+(?=\/v1(?:[/?]|$))/, "");
}

/** Whether a Host header is a name or an address, with or without a port (RFC 9110 section 7.2). */
export function isHost(host: string | null): boolean {
  if (host === null) return false;
  const [, port] = /^(?:\[[\da-f:.]+\]|[\w.~!$&'()*+,;=-]+)(?::(\d{1,5}))?$/i.exec(host) ?? [undefined, "none"];
  return port === undefined || Number(port) <= 65_535;
}

/** Other upgrades may be ignored: Java's client offers HTTP/2 with each request. */
function wantsWebSocket(request: Request): boolean {
  return request.headers.get("upgrade")?.toLowerCase().includes("websocket") === true;
}

function withoutQuery(pathAndQuery: string): string {
  const query = pathAndQuery.indexOf("?");
  return query === -1 ? pathAndQuery : pathAndQuery.slice(0, query);
}
