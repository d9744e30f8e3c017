const lineFeed = 0x0a;
const carriageReturn = 0x0d;

export function isLineEnd(byte: number | undefined): boolean {
  return byte === lineFeed || byte === carriageReturn;
}

/**
 * How many of `bytes` belong to whole events: the index after the last empty line, 0 if there is none. Lines end in LF,
 * CRLF or CR (WHATWG HTML, section 9.2.6).
 * @param before the bytes in front of these; the last three matter
 */
export function lastEventEnd(bytes: Uint8Array, before: Uint8Array): number {
  const { length } = bytes;
  // Nearly every chunk ends like this.
  if (length > 1 && bytes[length - 1] === lineFeed && bytes[length - 2] === lineFeed) return length;
  let lastCarriageReturn = bytes.lastIndexOf(carriageReturn);
  for (let at = length - 1; at >= 0; at--) {
    if (lastCarriageReturn > at) lastCarriageReturn = bytes.lastIndexOf(carriageReturn, at);
    at = Math.max(bytes.lastIndexOf(lineFeed, at), lastCarriageReturn);
    if (at >= 0 && endsEmptyLine(bytes, before, at)) return at + 1;
  }
  return 0;
}

/** The index after the first empty line, 0 if there is none. Parameters as for `lastEventEnd`. */
export function firstEventEnd(bytes: Uint8Array, before: Uint8Array): number {
  for (let at = 0; at < bytes.length; at++) {
    if (isLineEnd(bytes[at]) && endsEmptyLine(bytes, before, at)) return at + 1;
  }
  return 0;
}

/** @param at of a line end */
function endsEmptyLine(bytes: Uint8Array, before: Uint8Array, at: number): boolean {
  const byteAt = (index: number): number | undefined => (index < 0 ? before[before.length + index] : bytes[index]);
  const isCrLf = bytes[at] === lineFeed && byteAt(at - 1) === carriageReturn;
  return isLineEnd(byteAt(isCrLf ? at - 2 : at - 1));
}
