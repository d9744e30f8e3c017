/** Headers that concern one connection only (RFC 9110 section 7.6.1). */
const hopByHop = [
  "connection",
  "keep-alive", // RFC 2068 section 19.7.1
  "proxy-connection", // never standard, sent all the same
  "te",
  "trailer", // Bun hands on no trailers
  "transfer-encoding",
  "upgrade",
] as const;

const notForwarded = [
  ...hopByHop,
  "host", // fetch names the upstream
  "expect", // Bun has answered it already
  "authorization", // the client's key is ours alone
  "x-api-key",
  "proxy-authorization",
  "cookie", // the console's session may be among them
] as const;

const notReturned = [
  ...hopByHop,
  "proxy-authenticate", // concerns our hop, not the client's
] as const;

export interface RequestHeaderOptions {
  /** Whether the body goes through as it comes, so that its length still holds. */
  keepLength: boolean;
  clientAddress: string | undefined;
  upstreamApiKey: string | undefined;
}

export function upstreamRequestHeaders(
  incoming: Headers,
  { keepLength, clientAddress, upstreamApiKey }: RequestHeaderOptions,
): Headers {
  const headers = new Headers(incoming);
  removeNamedByConnection(headers);
  for (const name of notForwarded) headers.delete(name);
  if (!keepLength) headers.delete("content-length");
  // Usage is read from the answer's bytes, so they should not arrive compressed.
  headers.set("accept-encoding", "identity");
  if (upstreamApiKey !== undefined) headers.set("authorization", `Bearer ${upstreamApiKey}`);
  if (clientAddress !== undefined) headers.append("x-forwarded-for", clientAddress);
  return headers;
}

export function clientResponseHeaders(upstream: Headers): Headers {
  const headers = new Headers(upstream);
  removeNamedByConnection(headers);
  for (const name of notReturned) headers.delete(name);
  return headers;
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
