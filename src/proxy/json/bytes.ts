// Native checks of all bytes at once; `Buffer` itself has none.
export { isAscii, isUtf8 } from "node:buffer";

/** No view of the whole: the first view of bytes that the runtime has read gives them a buffer of their own (Bun 1.4.5). */
export const partOf = (bytes: Uint8Array, from: number, to: number): Uint8Array =>
  from === 0 && to === bytes.length ? bytes : bytes.subarray(from, to);

const colon = 0x3a;

/** @returns where white space and byte order marks end; the length if nothing else follows */
export function skipLeading(bytes: Uint8Array, from: number): number {
  let at = from;
  while (isWhiteSpace(bytes[at]) || isMarkByte(bytes[at])) at++;
  return at;
}

export function isWhiteSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

function isMarkByte(byte: number | undefined): boolean {
  return byte === 0xef || byte === 0xbb || byte === 0xbf;
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

/** `Buffer`'s search on bytes that are not a `Buffer`: wrapping them in one costs more than the search. */
export function indexOfBytes(bytes: Uint8Array, wanted: Uint8Array, from: number): number {
  return Buffer.prototype.indexOf.call(bytes, wanted, from);
}

/** One character per byte, so that a position in the text is a position in the bytes. */
export function latin1(bytes: Uint8Array, from = 0, to = bytes.length): string {
  return Buffer.prototype.latin1Slice.call(bytes, from, to);
}

/** What is not UTF-8, and a character cut in two, becomes U+FFFD. */
export function utf8(bytes: Uint8Array, from = 0, to = bytes.length): string {
  return Buffer.prototype.utf8Slice.call(bytes, from, to);
}
