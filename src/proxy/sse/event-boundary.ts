const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const lineFeeds = 0x0a0a0a0a;

/** Where in an event stream the next byte goes. */
export type Place = "between events" | "between lines" | "inside a line";

export interface EventBoundary {
  passed(bytes: Uint8Array): void;
  place(): Place;
}

/** Tracks, by an event stream's last few bytes, whether something else may be inserted. */
export function createEventBoundary(): EventBoundary {
  /** The last four bytes, the latest lowest. A stream starts as if an empty line came before it. */
  let tail = lineFeeds;
  return {
    passed(bytes) {
      for (let at = Math.max(0, bytes.length - 4); at < bytes.length; at++) tail = (tail << 8) | (bytes[at] ?? 0);
    },
    place() {
      const last = tail & 0xff;
      const beforeLast = (tail >> 8) & 0xff;
      // A CR ends a line, but its LF may still come. After an empty line, one more LF changes nothing.
      if (last === carriageReturn) return isLineEnd(beforeLast) ? "between events" : "inside a line";
      if (last !== lineFeed) return "inside a line";
      const beforeLineEnd = beforeLast === carriageReturn ? (tail >> 16) & 0xff : beforeLast;
      return isLineEnd(beforeLineEnd) ? "between events" : "between lines";
    },
  };
}

function isLineEnd(byte: number): boolean {
  return byte === lineFeed || byte === carriageReturn;
}
