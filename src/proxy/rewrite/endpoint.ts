/** What is rewritten in bodies of this path besides model name and caps. */
export interface Endpoint {
  templateKwargs: boolean;
  /** Whether its system text is a leading message or a member of its own. */
  system: "message" | "member" | undefined;
  /** Its streams have usage only if `stream_options` requests it. */
  streamOptions: boolean;
}

const endpoints: ReadonlyMap<string, Endpoint> = new Map([
  ["/v1/chat/completions", { templateKwargs: true, system: "message", streamOptions: true }],
  ["/v1/completions", { templateKwargs: false, system: undefined, streamOptions: true }],
  ["/v1/messages", { templateKwargs: true, system: "member", streamOptions: false }],
  ["/v1/responses", { templateKwargs: true, system: undefined, streamOptions: false }],
]);

const other: Endpoint = { templateKwargs: false, system: undefined, streamOptions: false };

/**
 * Ignores percent-encoding, repeated slashes and a trailing slash, as backends and the proxies in front of them do; case
 * matters, as it does to them.
 */
export function getEndpoint(path: string): Endpoint {
  return endpoints.get(path) ?? endpoints.get(decoded(path).replaceAll(/\/+/g, "/").replace(/\/$/, "")) ?? other;
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
