import { findNumber, findString, isLiteral } from "../json/decode.ts";
import type { JsonValue } from "../json/slots.ts";

/** Words that backends (pydantic, and so vLLM and SGLang) read as booleans, in any case. */
const trueWords = new Set(["1", "t", "true", "y", "yes", "on"]);
const falseWords = new Set(["0", "f", "false", "n", "no", "off"]);

export function isLenientTrue(bytes: Uint8Array, value: JsonValue): boolean {
  return isLiteral(bytes, value, "true") || findNumber(bytes, value) === 1 || isWord(bytes, value, trueWords);
}

export function isLenientFalse(bytes: Uint8Array, value: JsonValue): boolean {
  return isLiteral(bytes, value, "false") || findNumber(bytes, value) === 0 || isWord(bytes, value, falseWords);
}

export function isAbsentOrNull(bytes: Uint8Array, value: JsonValue): boolean {
  return value.kind === "absent" || isLiteral(bytes, value, "null");
}

function isWord(bytes: Uint8Array, value: JsonValue, words: ReadonlySet<string>): boolean {
  return words.has(findString(bytes, value)?.toLowerCase() ?? "");
}
