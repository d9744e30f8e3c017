import { latin1 } from "../json/bytes.ts";
import { findMember, isLiteral, objectShape, readJson, type JsonNode, type JsonObjectNode } from "../json/read.ts";

export interface MemberSpan {
  start: number;
  end: number;
}

/** What the filter needs of one event of a streamed completion. Positions are bytes of the event. */
export interface CompletionChunk extends ChunkChoices {
  usage: "object" | "null" | "absent";
  usageValue: MemberSpan;
  /** After the last member. */
  tail: number;
  /** The JSON of one of `lastChunkMembers`. */
  findMember(name: string): string | undefined;
}

interface ChunkChoices {
  hasChoices: boolean;
  /** A choice ends in this chunk. */
  isFinal: boolean;
  /** This server writes `"usage":null` into such a chunk unasked. */
  nullIsUsual: boolean;
  /** The same for a chunk that has usage because it was requested. */
  nullWasReplaced: boolean;
}

/** What llama.cpp (`timings`) and vLLM (the fingerprint) put into the last chunk of a stream. */
export const lastChunkMembers = ["system_fingerprint", "timings", "__tool_call_incomplete"] as const;

const value = {};
const chunkShape = objectShape({
  usage: value,
  choices: {
    elements: objectShape({
      finish_reason: value,
      text: value,
      matched_stop: value,
      stop_reason: value,
      delta: objectShape({ role: value, tool_calls: value, function_call: value }),
    }),
  },
  ...Object.fromEntries(lastChunkMembers.map((name) => [name, value])),
});

/** Undefined for any other event: comments, errors, `[DONE]`, and data in several lines, which no backend sends. */
export function readCompletionChunk(event: Uint8Array): CompletionChunk | undefined {
  const lines = [...latin1(event).matchAll(/(?:^|\n)data:([^\r\n]*)/g)];
  const [line] = lines;
  if (line === undefined || lines.length > 1) return undefined;
  const json = line[1] ?? "";
  const root = readJson(json, chunkShape);
  if (root?.kind !== "object") return undefined;
  const choices = findMember(root, "choices");
  if (choices?.kind !== "array") return undefined;
  return chunkOf(json, root, choices.elements, line.index + line[0].length - json.length);
}

function chunkOf(json: string, root: JsonObjectNode, choices: readonly JsonNode[], offset: number): CompletionChunk {
  const usage = findMember(root, "usage");
  return {
    ...readChoices(json, choices),
    usage: usage?.kind === "object" ? "object" : isLiteral(json, usage, "null") ? "null" : "absent",
    usageValue: { start: (usage?.start ?? 0) + offset, end: (usage?.end ?? 0) + offset },
    tail: root.tail + offset,
    findMember(name) {
      const member = findMember(root, name);
      return member === undefined ? undefined : json.slice(member.start, member.end);
    },
  };
}

/**
 * Servers and versions differ in whether they write null for what is not set, so it is read off the choices. SGLang, TGI
 * and mistral.rs write out every member of a delta; SGLang also `matched_stop`; vLLM's legacy completions, if they have a
 * null at all, everything. OpenAI and older chat of vLLM do none of this: their null was requested.
 */
function readChoices(json: string, choices: readonly JsonNode[]): ChunkChoices {
  const objects = choices.filter((choice) => choice.kind === "object");
  const deltas = objects.map((choice) => findMember(choice, "delta")).filter((delta) => delta?.kind === "object");
  const has = (name: string): boolean => objects.some((choice) => findMember(choice, name) !== undefined);
  const hasNull = (name: string): boolean => deltas.some((delta) => isLiteral(json, findMember(delta, name), "null"));
  const isText = has("text");
  const unsetRole = hasNull("role");
  return {
    hasChoices: objects.length > 0,
    isFinal: objects.some((choice) => findMember(choice, "finish_reason")?.kind === "string"),
    nullIsUsual:
      unsetRole ||
      hasNull("tool_calls") ||
      hasNull("function_call") ||
      has("matched_stop") ||
      (isText && has("stop_reason")),
    nullWasReplaced: unsetRole || (isText && has("matched_stop")),
  };
}
