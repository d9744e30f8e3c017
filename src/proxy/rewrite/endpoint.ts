import type { ClientRule } from "../../domain/models.ts";

/** The folders below `/v1` in which some paths are not like all others: they have ids, or reports of their own. */
const folders = ["messages", "responses", "files", "batches", "models"] as const;

/** What is known of a path, and what is rewritten in its bodies besides model name and caps. */
export interface Endpoint {
  /** The one of `folders` that it is, or is below; undefined: none. */
  folder: (typeof folders)[number] | undefined;
  /** Its bodies may name what another key has stored. */
  refers: boolean;
  /** A path that generates or embeds, whose bodies backends read as JSON whatever their content type. */
  takesJson: boolean;
  templateKwargs: boolean;
  /** Whether its system text is a leading message or a member of its own. */
  system: "message" | "member" | undefined;
  /** Its output limit includes the tokens of a `thinking` budget. */
  thinkingBudget: boolean;
  /** Its streams have usage only if `stream_options` requests it. */
  streamOptions: boolean;
  /** The member that lists what gets an answer each: conversations, or requests with parameters of their own. */
  batched: "messages" | "requests" | undefined;
  /** The member with its turns; undefined if it has none. */
  turns: "messages" | "input" | undefined;
  /** Those that know its bodies, and its errors. */
  clientRules: readonly ClientRule[];
}

const plain: Endpoint = {
  folder: undefined,
  refers: false,
  takesJson: true,
  templateKwargs: false,
  system: undefined,
  thinkingBudget: false,
  streamOptions: false,
  batched: undefined,
  turns: undefined,
  clientRules: [],
};
const chat: Endpoint = {
  ...plain,
  templateKwargs: true,
  system: "message",
  streamOptions: true,
  turns: "messages",
  clientRules: ["system_turns_to_user", "developer_to_system"],
};
const messages: Endpoint = {
  ...plain,
  folder: "messages",
  templateKwargs: true,
  system: "member",
  thinkingBudget: true,
  turns: "messages",
  clientRules: ["system_turns_to_user", "drop_billing_line"],
};
const responses: Endpoint = {
  ...plain,
  folder: "responses",
  refers: true,
  templateKwargs: true,
  turns: "input",
  clientRules: ["developer_to_system", "function_tools_only", "full_context_code"],
};
const endpoints: ReadonlyMap<string, Endpoint> = new Map([
  ["/v1/chat/completions", chat],
  // vLLM's.
  ["/v1/chat/completions/batch", { ...plain, batched: "messages" }],
  ["/v1/completions", { ...plain, streamOptions: true }],
  ["/v1/embeddings", plain],
  ["/v1/messages", messages],
  ["/v1/messages/batches", { ...plain, folder: "messages", batched: "requests" }],
  ["/v1/responses", responses],
]);

const other: Endpoint = { ...plain, refers: true, takesJson: false };

/** @param path canonical */
const isBelow = (path: string, folder: string): boolean => path === folder || path.startsWith(`${folder}/`);

/** The first that a path is below. */
const others = folders.map((folder) => [`/v1/${folder}`, { ...other, folder, refers: folder !== "messages" }] as const);

/**
 * Ignores percent-encoding, repeated slashes, segments of one dot, and a slash or a line feed at the end, as backends and the
 * proxies in front of them do; case matters, as it does to them.
 */
export function getEndpoint(path: string): Endpoint {
  // Nearly every path is one of these.
  return endpoints.get(path) ?? findEndpoint(canonical(path)) ?? other;
}

const findEndpoint = (plainPath: string): Endpoint | undefined =>
  endpoints.get(plainPath) ?? others.find(([folder]) => isBelow(plainPath, folder))?.[1];

export function canonical(path: string): string {
  // The replacements cost more than the look-up.
  if (endpoints.has(path)) return path;
  // nginx takes dots out that it has decoded. Starlette, and so vLLM, finds its routes before a line feed at the end too.
  const text = decoded(path).replace(/\n$/, "");
  return text.replaceAll(/\/(?:\.?\/)+/g, "/").replace(/\/\.?$/, "");
}

/**
 * The id in a path below `/v1/models`, which is decoded and never cleaned: `/models/q3` is not `models/q3`. Undefined for the
 * list, and for other paths.
 */
export const modelIdIn = (path: string): string | undefined =>
  canonical(path).startsWith("/v1/models/") ? decoded(path).replace(/^\/v1\/(?:\.?\/)*models\//, "") : undefined;

/** What is malformed stays as it is, as backends leave it, but for `%u0063`, which llama.cpp decodes. */
const decoded = (path: string): string => path.replaceAll(/(?:%[\da-f]{2})+|%u[\da-f]{4}/gi, decodedPart);

function decodedPart(part: string): string {
  if (/^%u/i.test(part)) return String.fromCharCode(Number.parseInt(part.slice(2), 16));
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
