const quote = 0x22;
const backslash = 0x5c;

/** Finds the end of a JSON string that arrives in pieces. */
export function createStringEnd() {
  /** The last piece ended inside an escape, so the next byte cannot be the closing quote. */
  let inEscape = false;
  return {
    /** @returns the position of its closing quote; the length if the string continues in the next piece */
    find(bytes: Uint8Array, from: number): number {
      let at = inEscape ? from + 1 : from;
      for (;;) {
        const next = bytes.indexOf(quote, at);
        const end = next < 0 ? bytes.length : next;
        let backslashes = 0;
        while (end - backslashes > at && bytes[end - backslashes - 1] === backslash) backslashes++;
        inEscape = backslashes % 2 === 1;
        if (next < 0 || !inEscape) return end;
        at = end + 1;
      }
    },
  };
}

/** Skips strings, arrays and objects that arrive in pieces, without decoding them and in constant memory. */
export function createJsonSkipper() {
  const stringEnd = createStringEnd();
  /** Arrays and objects that are open; brackets inside strings do not count. */
  let depth = 0;
  let inString = false;

  function skipString(bytes: Uint8Array, from: number): number {
    const end = stringEnd.find(bytes, from);
    inString = end === bytes.length;
    return inString ? end : end + 1;
  }

  function skipNested(bytes: Uint8Array, from: number): number {
    for (let at = from; at < bytes.length; at++) {
      const byte = bytes[at];
      if (byte === quote) {
        inString = true;
        return at + 1;
      }
      if (opensContainer(byte)) depth++;
      else if (closesContainer(byte) && --depth === 0) return at + 1;
    }
    return bytes.length;
  }

  return {
    /** @returns whether this first byte of a value opens something; if so, it is to be skipped next */
    open(byte: number): boolean {
      if (byte === quote) inString = true;
      else if (opensContainer(byte)) depth = 1;
      else return false;
      return true;
    },
    isOpen: (): boolean => inString || depth > 0,
    /** @returns where to continue: after what was opened, or at the end of the piece */
    skip: (bytes: Uint8Array, from: number): number => (inString ? skipString(bytes, from) : skipNested(bytes, from)),
  };
}

/** `[` or `{` */
function opensContainer(byte: number | undefined): boolean {
  return byte === 0x5b || byte === 0x7b;
}

/** `]` or `}` */
function closesContainer(byte: number | undefined): boolean {
  return byte === 0x5d || byte === 0x7d;
}
