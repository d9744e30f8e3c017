/** The paths of the specification whose bodies are JSON. */
const jsonPaths: ReadonlySet<string> = new Set([
  "/v1/chat/completions",
  "/v1/completions",
  "/v1/embeddings",
  "/v1/messages",
  "/v1/responses",
]);

export function takesJson(path: string): boolean {
  return jsonPaths.has(path) || jsonPaths.has(canonical(path));
}

/** What a body of this path gets besides its model name and caps. */
export interface Endpoint {
  templateKwargs: boolean;
  /** Where its system text is: a leading message, or a member of its own. */
  system: "message" | "member" | undefined;
  /** Its streams tell their usage only where `stream_options` asks for it. */
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
 * Percent-encoding, repeated slashes and one at the end are looked through, since backends and what stands before them do
 * so too; case is not, since for them it is another path.
 */
export function getEndpoint(path: string): Endpoint {
  return endpoints.get(path) ?? endpoints.get(canonical(path)) ?? other;
}

export const canonical = (path: string): string => decoded(path).replaceAll(/\/+/g, "/").replace(/\/$/, "");

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
