const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const space = 0x20;
const byteOrderMark = [0xef, 0xbb, 0xbf];
const dataField = new TextEncoder().encode("data:");
const lineFeedBytes = Uint8Array.of(lineFeed);

export interface EventStreamHandler {
  /** The next piece of an event's data, a view of what was pushed. Several lines are joined by a LF. */
  data(piece: Uint8Array): void;
  /** The event whose data was passed is complete. */
  dispatch(): void;
}

export interface EventStreamParser {
  push(bytes: Uint8Array): void;
  /** Whether the last event ended and no other has begun. Complete events can then be left out. */
  isBetweenEvents(): boolean;
  /**
   * Ends the stream. The standard drops an event that no blank line ends; it is dispatched here, because some servers
   * omit that line and their last event has the usage.
   */
  end(): void;
}

/**
 * Finds the data of server-sent events (WHATWG HTML, section 9.2.6) and ignores names, ids and retry times. Decodes and
 * keeps nothing, so an event may be of any size and cut anywhere.
 */
export function createEventStreamParser(handler: EventStreamHandler): EventStreamParser {
  /** How many bytes of a byte order mark the stream has started with; undefined once its first line has begun. */
  let markLength: number | undefined = 0;
  /** The last byte was a CR: a LF that follows belongs to the same line end. */
  let skipNextLineFeed = false;
  /** How many bytes of `data:` the line starts with: 0 if it is empty so far, -1 if it is another field or a comment. */
  let matched = 0;
  /** The colon was just read: a space that follows is not part of the value. */
  let mayBeSpace = false;
  let eventHasData = false;

  function skipByteOrderMark(bytes: Uint8Array, seen: number): number {
    let at = 0;
    while (at < bytes.length && seen + at < byteOrderMark.length && bytes[at] === byteOrderMark[seen + at]) at++;
    const length = seen + at;
    markLength = at === bytes.length && length < byteOrderMark.length ? length : undefined;
    // Half a mark is not a mark, but the start of an unknown field's name.
    if (markLength === undefined && length > 0 && length < byteOrderMark.length) matched = -1;
    return at;
  }

  function beginData(): void {
    mayBeSpace = true;
    if (eventHasData) handler.data(lineFeedBytes);
    eventHasData = true;
  }

  /** Reads the next bytes of a line, at least one. */
  function readLine(bytes: Uint8Array, from: number, to: number): void {
    let at = from;
    while (at < to && matched >= 0 && matched < dataField.length) {
      matched = bytes[at++] === dataField[matched] ? matched + 1 : -1;
      if (matched === dataField.length) beginData();
    }
    if (matched < 0 || at === to) return;
    if (mayBeSpace && bytes[at] === space) at++;
    mayBeSpace = false;
    if (at < to) handler.data(bytes.subarray(at, to));
  }

  function endLine(): void {
    if (matched === 0 && eventHasData) {
      handler.dispatch();
      eventHasData = false;
    }
    // `data` without a colon is a line of empty data.
    if (matched === dataField.length - 1) beginData();
    matched = 0;
    mayBeSpace = false;
  }

  return {
    push(bytes) {
      let at = markLength === undefined ? 0 : skipByteOrderMark(bytes, markLength);
      // Each search continues from its last result, so that a chunk is searched once for each.
      let nextLineFeed = -1;
      let nextCarriageReturn = -1;
      while (at < bytes.length) {
        if (skipNextLineFeed && bytes[at] === lineFeed) at++;
        skipNextLineFeed = false;
        if (nextLineFeed < at) nextLineFeed = find(bytes, lineFeed, at);
        if (nextCarriageReturn < at) nextCarriageReturn = find(bytes, carriageReturn, at);
        const lineEnd = Math.min(nextLineFeed, nextCarriageReturn);
        if (at < lineEnd) readLine(bytes, at, lineEnd);
        if (lineEnd === bytes.length) return;
        endLine();
        skipNextLineFeed = lineEnd === nextCarriageReturn;
        at = lineEnd + 1;
      }
    },
    isBetweenEvents: () => markLength === undefined && !skipNextLineFeed && matched === 0 && !eventHasData,
    end() {
      endLine();
      endLine();
    },
  };
}

/** @returns the length if there is none */
function find(bytes: Uint8Array, byte: number, from: number): number {
  const at = bytes.indexOf(byte, from);
  return at < 0 ? bytes.length : at;
}
