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
