// What goes round a rule of a key, because some engines read it and Tollgate does not: it is refused, and not understood.
// Looked for at the top of a body, in its `extra_body`, in the requests of a batch, and among the fields of a form.
// A new way round a limit begins with its row here. With those of `engine`, an operator speaks to the engine: no key is
// refused for them (`engine-members.ts`).

import { isLiteral, namedInAnyCase, findPositiveInteger } from "../json/bytes.ts";
import type { JsonValue } from "../json/slots.ts";

/** The limits of tokens of a key, the models that it may use, or what the operator tells the engine. */
type KeyRule = "tokens" | "models" | "engine";

export interface MemberRow {
  /** That it goes round. */
  rule: KeyRule;
  /** In which forms it is refused; empty: in any. */
  forms: string;
  /** What it does, and at which engine. */
  does: string;
  /** Where that was read. */
  source: string;
}

const notOnce = "twice, in another case of letters, in extra_body";
const differs =
  "engines differ in which of two they take, Go's, such as Ollama, read any case, and LiteLLM sends extra_body";
const differsIn = "Go's encoding/json; openai-python's _base_client.py, with which LiteLLM sends";
const llamaCpp = "llama.cpp's tools/server/server-schema.cpp";

const number = {
  rule: "tokens",
  forms: `${notOnce}, or as anything but a positive integer`,
  does: `llama.cpp reads -1 as no end, ${differs}`,
  source: `${llamaCpp}; ${differsIn}`,
} as const;
const fallbacks = {
  rule: "models",
  forms: "",
  does: "LiteLLM and OpenRouter turn to what it names",
  source: "LiteLLM's router.py; OpenRouter's page on model fallbacks",
} as const;
const told = <Does extends string>(does: Does) =>
  ({ rule: "engine", forms: "", does, source: "the requests of vLLM and SGLang, in their protocol.py" }) as const;
const salt = told("shares what is cached under it with whoever says the same");
const otherEngine = told("fetches what another engine has read");
const replica = told("chooses the replica");
const requestId = told("is the engine's own id of the request, by which requests are aborted");

/** The members, and what else of a body, in the order in which they are documented. */
export const memberRows = {
  max_tokens: number,
  max_completion_tokens: number,
  max_output_tokens: number,
  n: number,
  best_of: number,
  n_predict: { rule: "tokens", forms: "", does: "llama.cpp prefers it to max_tokens", source: llamaCpp },
  n_cmpl: { rule: "tokens", forms: "", does: "llama.cpp prefers it to n", source: llamaCpp },
  background: {
    rule: "tokens",
    forms: "as true",
    does: "vLLM and SGLang go on when the response has been counted",
    source: "the ResponsesRequest of both",
  },
  model: { rule: "models", forms: `${notOnce}, or as a file of a form`, does: differs, source: differsIn },
  models: fallbacks,
  fallbacks,
  context_window_fallbacks: fallbacks,
  content_policy_fallbacks: fallbacks,
  lora_path: {
    rule: "models",
    forms: "",
    does: "SGLang generates with the adapter that it names",
    source: "SGLang's entrypoints/openai/protocol.py",
  },
  requests: {
    rule: "models",
    forms: "in a batch",
    does: "each of them names a model of its own",
    source: "Anthropic's message batches",
  },
  boundary: {
    rule: "models",
    forms: "unless it is one, stands between the parts alone, at most 64, and their heads are plain and below 64 KiB",
    does: "engines differ in where a part begins and what its name is",
    source: "RFC 2046 section 5.1.1; RFC 7578",
  },
  priority: told("comes before others in the engine's own queue"),
  cache_salt: salt,
  extra_key: salt,
  kv_transfer_params: otherEngine,
  bootstrap_host: otherEngine,
  bootstrap_port: otherEngine,
  bootstrap_room: otherEngine,
  data_parallel_rank: replica,
  routed_dp_rank: replica,
  disagg_prefill_dp_rank: replica,
  rid: requestId,
  request_id: requestId,
} as const satisfies Record<string, MemberRow>;

export type MemberName = keyof typeof memberRows;

export interface FoundMember {
  name: MemberName;
  /** The object that has it, with a dot at its end; unset at the top. */
  place?: string | undefined;
}

/** The first member that goes round a rule; unset: none. */
export type FoundMembers = Readonly<Partial<Record<KeyRule, FoundMember>>>;

export const noneFound: FoundMembers = {};

export function addFound(found: FoundMembers, name: MemberName, place?: string): FoundMembers {
  const { rule } = memberRows[name];
  return found[rule] === undefined ? { ...found, [rule]: { name, place } } : found;
}

const allNames = Object.keys(memberRows) as MemberName[];
export const engineMembers: readonly MemberName[] = allNames.filter((name) => memberRows[name].rule === "engine");
/** Not what is looked for in batches and forms alone. */
const names = allNames.filter((name) => !engineMembers.includes(name) && !/^(requests|boundary)$/.test(name));
const longestName = Math.max(...names.map(({ length }) => length));
/** Most other names need not be decoded. An escape may be any letter. */
const firstBytes = new Set(Buffer.from(`\\${names.map(([first = ""]) => first + first.toUpperCase()).join("")}`));

/** The name of a row, in any case of letters; undefined for nearly every member. */
export function findMemberName(bytes: Uint8Array, start: number, end: number): MemberName | undefined {
  if (!firstBytes.has(bytes[start] ?? 0)) return undefined;
  const found = namedInAnyCase(bytes, start, end, longestName);
  return names.find((name) => name === found);
}

/** @param values of a member at the top: there may be one, a positive integer or null */
export const isOneNumber = (bytes: Uint8Array, [value, ...others]: readonly JsonValue[] = []): boolean =>
  others.length === 0 &&
  (value === undefined || isLiteral(bytes, value, "null") || findPositiveInteger(bytes, value) !== undefined);
