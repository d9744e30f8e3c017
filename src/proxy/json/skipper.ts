const quote = 0x22;
const backslash = 0x5c;

/** Where a JSON string ends that comes in pieces. */
export interface StringEnd {
  /** @returns where its closing quote is; the length where it goes on in the next piece */
  find(bytes: Uint8Array, from: number): number;
}

export function createStringEnd(): StringEnd {
  /** The piece before ended in the middle of an escape: the next byte ends nothing. */
  let inEscape = false;
  return {
    find(bytes, from) {
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

/** Gets past strings, arrays and objects without decoding them. */
export interface JsonSkipper {
  /** @returns whether this first byte of a value opens something that is now to be skipped */
  open(byte: number): boolean;
  isOpen(): boolean;
  /** @returns where to go on: behind what was opened, or at the end of the piece */
  skip(bytes: Uint8Array, from: number): number;
}

export function createJsonSkipper(): JsonSkipper {
  const stringEnd = createStringEnd();
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
    open(byte) {
      if (byte === quote) inString = true;
      else if (opensContainer(byte)) depth = 1;
      else return false;
      return true;
    },
    isOpen: () => inString || depth > 0,
    skip: (bytes, from) => (inString ? skipString(bytes, from) : skipNested(bytes, from)),
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
