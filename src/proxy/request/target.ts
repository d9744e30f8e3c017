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
  if (!methods.has(request.method)) throw new ProxyError("method_not_allowed");
  if (wantsWebSocket(request)) throw new ProxyError("upgrade_not_supported");
  return { path: withoutQuery(pathAndQuery), pathAndQuery };
}

/** The path without its query, whose values belong in no log. */
export function loggedPath(url: string): string {
  return withoutQuery(findPathAndQuery(url) ?? url);
}

/** Path and query of a request's URL as they came; undefined if an invalid Host made the URL relative. */
export function findPathAndQuery(url: string): string | undefined {
  if (!url.startsWith("http")) return undefined;
  const start = url.indexOf("/", url.indexOf("://") + 3);
  return start === -1 ? undefined : url.slice(start);
}

/** Whether a Host header is a name or an address, with or without a port (RFC 9110 section 7.2). */
export function isHost(host: string | null): boolean {
  return host !== null && /^(?:\[[\da-f:.]+\]|[\w.~!$&'()*+,;=-]+)(?::\d{1,5})?$/i.test(host);
}

/** Other upgrades may be ignored: Java's client offers HTTP/2 with each request. */
function wantsWebSocket(request: Request): boolean {
  return request.headers.get("upgrade")?.toLowerCase().includes("websocket") === true;
}

function withoutQuery(pathAndQuery: string): string {
  const query = pathAndQuery.indexOf("?");
  return query === -1 ? pathAndQuery : pathAndQuery.slice(0, query);
}
