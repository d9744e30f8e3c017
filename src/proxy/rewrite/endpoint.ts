/** What is rewritten in bodies of this path besides model name and caps. */
export interface Endpoint {
  /** A path of the specification, whose bodies backends read as JSON whatever their content type. */
  takesJson: boolean;
  templateKwargs: boolean;
  /** Whether its system text is a leading message or a member of its own. */
  system: "message" | "member" | undefined;
  /** Its output limit includes the tokens of a `thinking` budget. */
  thinkingBudget: boolean;
  /** Its streams have usage only if `stream_options` requests it. */
  streamOptions: boolean;
}

const plain: Endpoint = {
  takesJson: true,
  templateKwargs: false,
  system: undefined,
  thinkingBudget: false,
  streamOptions: false,
};
const endpoints: ReadonlyMap<string, Endpoint> = new Map([
  ["/v1/chat/completions", { ...plain, templateKwargs: true, system: "message", streamOptions: true }],
  ["/v1/completions", { ...plain, streamOptions: true }],
  ["/v1/embeddings", plain],
  ["/v1/messages", { ...plain, templateKwargs: true, system: "member", thinkingBudget: true }],
  ["/v1/responses", { ...plain, templateKwargs: true }],
]);

const other: Endpoint = { ...plain, takesJson: false };

/**
 * Ignores percent-encoding, repeated slashes and a trailing slash, as backends and the proxies in front of them do; case
 * matters, as it does to them.
 */
export function getEndpoint(path: string): Endpoint {
  return endpoints.get(path) ?? endpoints.get(canonical(path)) ?? other;
}

export function canonical(path: string): string {
  // Nearly every path is one of these, which are canonical, and the replacements cost more than the look-up.
  return endpoints.has(path) ? path : decoded(path).replaceAll(/\/+/g, "/").replace(/\/$/, "");
}

/** @param path canonical */
export const isBelow = (path: string, folder: string): boolean => path === folder || path.startsWith(`${folder}/`);

/** What is malformed stays as it is, as backends leave it. */
const decoded = (path: string): string => path.replaceAll(/(?:%[\da-f]{2})+/gi, (part) => decodedPart(part));

function decodedPart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
