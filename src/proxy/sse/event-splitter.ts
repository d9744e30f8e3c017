const lineFeed = 0x0a;
const carriageReturn = 0x0d;

export interface EventSplitter {
  /** @returns the events completed by these bytes, each with the empty line that ends it */
  push(bytes: Uint8Array): Uint8Array[];
  /** @returns the rest, which no empty line ends */
  end(): Uint8Array;
}

/**
 * Cuts an event stream into its events without losing a byte. Lines end in LF or CRLF; no backend ends them in a bare
 * CR, and such a stream is returned whole by `end`.
 */
export function createEventSplitter(): EventSplitter {
  /** The unfinished event, joined once it is complete: joining on every push would be quadratic for a long one. */
  let pieces: Uint8Array[] = [];
  /** The unfinished line has nothing, or nothing but a CR, so far. */
  let lineMayBeEmpty = true;

  function isEmptyLine(bytes: Uint8Array, from: number, to: number): boolean {
    return lineMayBeEmpty && (from === to || (to - from === 1 && bytes[from] === carriageReturn));
  }

  return {
    push(bytes) {
      const events: Uint8Array[] = [];
      let eventStart = 0;
      let lineStart = 0;
      for (let end = bytes.indexOf(lineFeed); end >= 0; end = bytes.indexOf(lineFeed, lineStart)) {
        if (isEmptyLine(bytes, lineStart, end)) {
          events.push(joined(pieces, bytes.subarray(eventStart, end + 1)));
          pieces = [];
          eventStart = end + 1;
        }
        lineStart = end + 1;
        lineMayBeEmpty = true;
      }
      if (lineStart < bytes.length) lineMayBeEmpty = isEmptyLine(bytes, lineStart, bytes.length);
      if (eventStart < bytes.length) pieces.push(bytes.subarray(eventStart));
      return events;
    },
    end() {
      const rest = joined(pieces, new Uint8Array());
      pieces = [];
      return rest;
    },
  };
}

function joined(pieces: readonly Uint8Array[], last: Uint8Array): Uint8Array {
  return pieces.length === 0 ? last : Buffer.concat([...pieces, last]);
}
