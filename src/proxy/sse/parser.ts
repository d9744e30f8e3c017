const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const space = 0x20;
const byteOrderMark = [0xef, 0xbb, 0xbf];
const dataField = new TextEncoder().encode("data:");
const lineFeedBytes = Uint8Array.of(lineFeed);

export interface EventStreamHandler {
  /** The next piece of an event's data. Pieces are views of what was pushed; several lines arrive joined by a LF. */
  data(piece: Uint8Array): void;
  /** The event whose data came before is whole. */
  dispatch(): void;
}

export interface EventStreamParser {
  push(bytes: Uint8Array): void;
  /** Whether an event was ended and no other begun. Whole events can then be left out without harm to the rest. */
  isBetweenEvents(): boolean;
  /**
   * Ends the stream. The standard drops an event that no blank line ends; it is dispatched here, because real servers
   * leave that line out and their last event is the one with the usage.
   */
  end(): void;
}

/**
 * Finds the data of server-sent events (WHATWG HTML, section 9.2.6) and nothing else: names, ids and retry times mean
 * nothing to a count. Nothing is decoded and nothing is kept, so an event may be of any size and be cut anywhere.
 */
export function createEventStreamParser(handler: EventStreamHandler): EventStreamParser {
  const lines = createLineReader(handler);
  /** How much of a byte order mark the stream has shown; undefined once it is past it. */
  let markLength: number | undefined = 0;
  let skipNextLineFeed = false;

  function skipByteOrderMark(bytes: Uint8Array, seen: number): number {
    let at = 0;
    while (at < bytes.length && seen + at < byteOrderMark.length && bytes[at] === byteOrderMark[seen + at]) at++;
    const length = seen + at;
    markLength = at === bytes.length && length < byteOrderMark.length ? length : undefined;
    // Half a mark is none: what began like one is the name of a field nobody knows.
    if (markLength === undefined && length > 0 && length < byteOrderMark.length) lines.readOther();
    return at;
  }

  return {
    push(bytes) {
      let at = markLength === undefined ? 0 : skipByteOrderMark(bytes, markLength);
      // Each search goes on from where the last one of its kind ended, so that a chunk is looked through once for each.
      let nextLineFeed = -1;
      let nextCarriageReturn = -1;
      while (at < bytes.length) {
        if (skipNextLineFeed) {
          skipNextLineFeed = false;
          if (bytes[at] === lineFeed) at++;
        }
        if (nextLineFeed < at) nextLineFeed = find(bytes, lineFeed, at);
        if (nextCarriageReturn < at) nextCarriageReturn = find(bytes, carriageReturn, at);
        const lineEnd = Math.min(nextLineFeed, nextCarriageReturn);
        if (at < lineEnd) lines.read(bytes, at, lineEnd);
        if (lineEnd === bytes.length) return;
        lines.endLine();
        skipNextLineFeed = lineEnd === nextCarriageReturn;
        at = lineEnd + 1;
      }
    },
    isBetweenEvents: () => markLength === undefined && !skipNextLineFeed && lines.isBetweenEvents(),
    end() {
      lines.endLine();
      lines.endLine();
    },
  };
}

interface LineReader {
  /** The next bytes of a line. */
  read(bytes: Uint8Array, from: number, to: number): void;
  /** The line begins like no field that counts. */
  readOther(): void;
  endLine(): void;
  isBetweenEvents(): boolean;
}

function createLineReader(handler: EventStreamHandler): LineReader {
  let lineIsEmpty = true;
  /** How much of `data:` the line has shown so far; -1: it is another field or a comment. */
  let matched = 0;
  /** One space after the colon is not part of the value. */
  let mayBeSpace = false;
  let eventHasData = false;

  function beginData(): void {
    mayBeSpace = true;
    if (eventHasData) handler.data(lineFeedBytes);
    eventHasData = true;
  }

  return {
    read(bytes, from, to) {
      lineIsEmpty = false;
      let at = from;
      while (at < to && matched >= 0 && matched < dataField.length) {
        matched = bytes[at++] === dataField[matched] ? matched + 1 : -1;
        if (matched === dataField.length) beginData();
      }
      if (matched < 0 || at === to) return;
      if (mayBeSpace && bytes[at] === space) at++;
      mayBeSpace = false;
      if (at < to) handler.data(bytes.subarray(at, to));
    },
    readOther() {
      lineIsEmpty = false;
      matched = -1;
    },
    endLine() {
      if (lineIsEmpty && eventHasData) {
        handler.dispatch();
        eventHasData = false;
      }
      // `data` alone, without its colon, is a line of data too: an empty one.
      if (matched === dataField.length - 1) beginData();
      lineIsEmpty = true;
      matched = 0;
      mayBeSpace = false;
    },
    isBetweenEvents: () => lineIsEmpty && !eventHasData,
  };
}

/** @returns the length where there is none */
function find(bytes: Uint8Array, byte: number, from: number): number {
  const at = bytes.indexOf(byte, from);
  return at < 0 ? bytes.length : at;
}
