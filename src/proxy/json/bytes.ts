import type { JsonValue, Span } from "./slots.ts";
import { backslash, isName, minus, startsWith } from "./slots.ts";

// Native checks of all bytes at once; `Buffer` itself has none.
export { isAscii, isUtf8 } from "node:buffer";

/** No view of the whole: the first view of bytes that the runtime has read gives them a buffer of their own (Bun 1.4.5). */
export const partOf = <B extends ArrayBufferLike>(bytes: Uint8Array<B>, from: number, to: number): Uint8Array<B> =>
  from === 0 && to === bytes.length ? bytes : bytes.subarray(from, to);

const colon = 0x3a;

/**
 * What some program that trims a text before it parses it takes for blank, and JSON does not: control characters, and the
 * bytes of Unicode's white space and of the byte order mark in UTF-8. Not NUL, which is a sign of UTF-16.
 */
const blanks = new Uint8Array(256).fill(1, 0x01, 0x21).fill(1, 0x80, 0x8b);
for (const byte of new TextEncoder().encode("\u0085\u00a0\u1680\u2000\u2028\u2029\u202f\u205f\u3000\ufeff"))
  blanks[byte] = 1;

export const isBlank = (byte: number | undefined): boolean => blanks[byte ?? 0] === 1;

/** @returns the first byte that is not blank; undefined if there is none */
export function findNotBlank(bytes: Uint8Array): number | undefined {
  let at = 0;
  while (isBlank(bytes[at])) at += 1;
  return bytes[at];
}

/** @returns where white space and byte order marks end; the length if nothing else follows */
export function skipLeading(bytes: Uint8Array, from: number): number {
  for (let at = from; ; at++) {
    const byte = bytes[at];
    if (!isWhiteSpace(byte) && byte !== 0xef && byte !== 0xbb && byte !== 0xbf) return at;
  }
}

export function isWhiteSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/**
 * Whether there is a member, at any depth, whose name ends in `nameEnd` and whose value starts with `firstByte`. A string
 * that quotes JSON does not count: its quotes are escaped.
 * @param nameEnd the name's last letters and its closing quote
 */
export function hasMember(json: Uint8Array, nameEnd: Uint8Array, firstByte?: number): boolean {
  for (let at = indexOfBytes(json, nameEnd, 0); at >= 0; at = indexOfBytes(json, nameEnd, at + 1)) {
    let next = at + nameEnd.length;
    while (isWhiteSpace(json[next]) || json[next] === colon) next++;
    if (firstByte === undefined || json[next] === firstByte) return true;
  }
  return false;
}

export const areSameBytes = (a: Uint8Array, b: Uint8Array): boolean => Buffer.prototype.equals.call(a, b);

/** `Buffer`'s search on bytes that are not a `Buffer`: wrapping them in one costs more than the search. */
export const indexOfBytes = (bytes: Uint8Array, wanted: Uint8Array, from: number): number =>
  Buffer.prototype.indexOf.call(bytes, wanted, from);

/** One character per byte, so that a position in the text is a position in the bytes. */
export const latin1 = (bytes: Uint8Array, from = 0, to = bytes.length): string =>
  Buffer.prototype.latin1Slice.call(bytes, from, to);

/** What is not UTF-8, and a character cut in two, becomes U+FFFD. */
export const utf8 = (bytes: Uint8Array, from = 0, to = bytes.length): string =>
  Buffer.prototype.utf8Slice.call(bytes, from, to);

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

export function isLiteral(bytes: Uint8Array, { kind, start, end }: JsonValue, literal: string): boolean {
  return kind === "literal" && end - start === literal.length && startsWith(bytes, start, literal);
}

/** The value's own text; undefined if it is longer than 64 KiB. */
export function findJson(bytes: Uint8Array, { start, end }: Span): string | undefined {
  return end - start > maxScalarBytes ? undefined : utf8(bytes, start, end);
}

/** @param text ASCII without characters that JSON escapes */
export const isString = (bytes: Uint8Array, { kind, start, end }: JsonValue, text: string): boolean =>
  kind === "string" && isName(bytes, start + 1, end - 1, text);

/**
 * A member's name for a backend that ignores upper and lower case; Go takes the long s for one too.
 * @returns the name in lower case; undefined if it is longer than `maxLength`
 */
export function namedInAnyCase(bytes: Uint8Array, start: number, end: number, maxLength: number): string | undefined {
  return end - start > maxLength * maxUnitBytes ? undefined : lowerCaseName(bytes, start, end);
}

/** The same, however long it is. */
export const lowerCaseName = (bytes: Uint8Array, start: number, end: number): string =>
  decodeString(bytes, { start, end }).toLowerCase().replaceAll("ſ", "s");

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
