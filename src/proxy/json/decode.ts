import type { JsonValue, Span } from "./slots.ts";
import { latin1, utf8 } from "./bytes.ts";
import { backslash, minus, startsWith } from "./tokens.ts";

/** No name, word or count is longer, and this much is decoded in 0.1 ms. */
const maxScalarBytes = 64 * 1024;

/** The content of a string of at most 64 KiB; undefined for any other value. */
export function findString(bytes: Uint8Array, value: JsonValue): string | undefined {
  const isShort = value.kind === "string" && value.end - value.start <= maxScalarBytes;
  return isShort ? decodeString(bytes, contentOf(value)) : undefined;
}

/** A number as a double, which may be infinite. One of more than 64 KiB counts as infinite. */
export function findNumber(bytes: Uint8Array, { kind, start, end }: JsonValue): number | undefined {
  if (kind !== "number") return undefined;
  if (end - start > maxScalarBytes) return bytes[start] === minus ? -Infinity : Infinity;
  return Number(latin1(bytes, start, end));
}

export function isLiteral(bytes: Uint8Array, { kind, start, end }: JsonValue, literal: string): boolean {
  return kind === "literal" && end - start === literal.length && startsWith(bytes, start, literal);
}

/** The value's own text; undefined if it is longer than 64 KiB. */
export function findJson(bytes: Uint8Array, { start, end }: Span): string | undefined {
  return end - start > maxScalarBytes ? undefined : utf8(bytes, start, end);
}

/** @param text ASCII without characters that JSON escapes */
export function isString(bytes: Uint8Array, value: JsonValue, text: string): boolean {
  if (value.kind !== "string") return false;
  const length = value.end - value.start - 2;
  if (length === text.length) return startsWith(bytes, value.start + 1, text);
  const mayBeEscaped = length > text.length && length <= text.length * maxUnitBytes;
  return mayBeEscaped && findString(bytes, value) === text;
}

/** Whether a member's name is `name` for a backend that ignores upper and lower case. @param name ASCII in lower case */
export function isNameInAnyCase(bytes: Uint8Array, start: number, end: number, name: string): boolean {
  const length = end - start;
  if (length < name.length || length > name.length * maxUnitBytes) return false;
  return decodeString(bytes, { start, end }).toLowerCase() === name;
}

/** The part between a string's quotes. */
export function contentOf({ start, end }: Span): Span {
  return { start: start + 1, end: end - 1 };
}

/** @param content between a string's quotes */
export function decodeString(bytes: Uint8Array, { start, end }: Span): string {
  const raw = utf8(bytes, start, end);
  return raw.includes("\\") ? (JSON.parse(`"${raw}"`) as string) : raw;
}

/** A UTF-16 unit takes at most six bytes: `\u0061`. */
const maxUnitBytes = 6;

/** At least the first `length` UTF-16 units of a string, in time that depends on `length` only. */
export function decodeHead(bytes: Uint8Array, { start, end }: Span, length: number): string {
  const cut = start + length * maxUnitBytes;
  return cut >= end ? decodeString(bytes, { start, end }) : unescapeCut(utf8(bytes, start, cut));
}

/** At least the last `length` UTF-16 units of a string, in time that depends on `length` only. */
export function decodeTail(bytes: Uint8Array, { start, end }: Span, length: number): string {
  const cut = end - length * maxUnitBytes - maxCutBytes;
  return cut <= start ? decodeString(bytes, { start, end }) : unescapeCut(utf8(bytes, plainPosition(bytes, cut), end));
}

const maxCutBytes = 64;

/** A position from `at` on that is not inside an escape; `at` itself if escapes stand too close to each other. */
function plainPosition(bytes: Uint8Array, at: number): number {
  let plain = 0;
  for (let next = at; next < at + maxCutBytes; next += 1) {
    plain = bytes[next] === backslash ? 0 : plain + 1;
    if (plain === maxUnitBytes) return next;
  }
  return at;
}

const escapes = /\\(?:u([0-9a-fA-F]{4})|(.))/g;
const letters: Readonly<Record<string, string>> = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };

/** Unlike `JSON.parse`, accepts a text that was cut inside an escape. */
function unescapeCut(raw: string): string {
  return raw.replace(escapes, (_, hex: string | undefined, letter = "") =>
    hex === undefined ? (letters[letter] ?? letter) : String.fromCharCode(Number.parseInt(hex, 16)),
  );
}
