import { findNumber, findString } from "../json/bytes.ts";
import type { JsonValue } from "../json/slots.ts";

/** How many tokens are reserved for the output of a request that does not limit it. */
export const defaultOutputTokens = 1024;

/**
 * The value as a double, as backends read it: `1e3` and `100.0` are integers, and so are a string of digits and a number
 * too large to have decimals or to be finite. Undefined for anything else, such as `NaN` and `Infinity`.
 */
export function findPositiveInteger(bytes: Uint8Array, value: JsonValue): number | undefined {
  const digits = findString(bytes, value);
  const tokens = digits !== undefined && /^[0-9]+$/.test(digits) ? Number(digits) : findNumber(bytes, value);
  const isInteger = Number.isInteger(tokens) || tokens === Infinity;
  return tokens !== undefined && tokens > 0 && isInteger ? tokens : undefined;
}

const integerText = /^[\s\u0085]*\+?(\d+(?:_\d+)*)(?:\.0+)?[\s\u0085]*$/;

/**
 * What is no string of digits, and pydantic, and so vLLM and SGLang, reads as a positive integer all the same: it passes the
 * cap as it is, but not the limits of a key. One of more than 64 KiB, of which most may be spaces, counts as infinite.
 */
export function findIntegerText(bytes: Uint8Array, value: JsonValue): number | undefined {
  if (value.kind !== "string") return undefined;
  const text = findString(bytes, value);
  if (text === undefined) return Infinity;
  const digits = integerText.exec(text)?.[1];
  return digits === undefined ? undefined : Number(digits.replaceAll("_", "")) || undefined;
}
