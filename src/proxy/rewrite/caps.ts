import type { JsonEditor } from "../json/edit.ts";
import { type JsonNode, type JsonObjectNode, listMembers } from "../json/read.ts";
import type { RewriteRules } from "./rules.ts";

export type CapRules = Pick<RewriteRules, "maxContextTokens" | "maxOutputTokens">;

/** One field under its names of different years and endpoints. */
export const cappedMembers = ["max_tokens", "max_completion_tokens", "max_output_tokens"] as const;

/** Reserved for what the chat template adds to the conversation. */
const reservedTokens = 512;
const charactersPerToken = 3;

/** Caps every occurrence, so that the backend reads a capped one whichever it uses. */
export function capTokens(editor: JsonEditor, body: string, root: JsonObjectNode, rules: CapRules): void {
  const nodes = cappedMembers.flatMap((name) => listMembers(root, name));
  if (nodes.length === 0) return;
  const limit = outputLimit(body, rules);
  for (const node of nodes) {
    const tokens = findPositiveInteger(body, node);
    if (tokens !== undefined && tokens > limit) editor.replace(node, String(limit));
  }
}

/**
 * The value as a double, as backends read it: `1e3` and `100.0` are integers, and so is a number too large to have
 * decimals or to be finite. Undefined for anything else, such as `NaN`, `Infinity` and strings.
 */
function findPositiveInteger(body: string, node: JsonNode): number | undefined {
  if (node.kind !== "number") return undefined;
  const value = Number(body.slice(node.start, node.end));
  return value > 0 && (Number.isInteger(value) || value === Infinity) ? value : undefined;
}

/** What the context leaves beside the estimated input, at most the operator's limit, at least 1. */
export function outputLimit(body: string, rules: CapRules): number {
  const limit = (characters: number): number => {
    const available = rules.maxContextTokens - Math.floor(characters / charactersPerToken) - reservedTokens;
    return Math.max(1, Math.min(available, rules.maxOutputTokens));
  };
  // Characters outside the BMP are two UTF-16 units and four bytes in UTF-8, so both lengths bound their number. They are
  // counted only if that bound leaves the limit open.
  const most = Math.min(body.length, Buffer.byteLength(body) - body.length) >> 1;
  const strict = limit(body.length);
  return strict === limit(body.length - most) ? strict : limit(countCodePoints(body));
}

export function countCodePoints(text: string): number {
  let pairs = 0;
  for (let at = 1; at < text.length; at += 1) {
    if ((text.charCodeAt(at) & 0xfc00) === 0xdc00 && (text.charCodeAt(at - 1) & 0xfc00) === 0xd800) pairs += 1;
  }
  return text.length - pairs;
}
