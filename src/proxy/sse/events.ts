const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const colon = 0x3a;

export function isLineEnd(byte: number | undefined): boolean {
  return byte === lineFeed || byte === carriageReturn;
}

/** Whether bytes end an event, as nearly every chunk does. False for the few that end it in CRLF or CR. */
export function endInLineFeeds(bytes: Uint8Array): boolean {
  const { length } = bytes;
  return length > 1 && bytes[length - 1] === lineFeed && bytes[length - 2] === lineFeed;
}

/**
 * How many of `bytes` belong to whole events: the index after the last empty line, 0 if there is none. Lines end in LF,
 * CRLF or CR (WHATWG HTML, section 9.2.6).
 * @param before the bytes in front of these; the last three matter
 */
export function lastEventEnd(bytes: Uint8Array, before: Uint8Array): number {
  const { length } = bytes;
  if (endInLineFeeds(bytes)) return length;
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

/**
 * How many of `bytes`, which begin a line, are whole comment lines. A CR at the end is not whole: its LF may come.
 */
export function commentsEnd(bytes: Uint8Array): number {
  let end = 0;
  while (bytes[end] === colon) {
    let at = end;
    while (at < bytes.length && !isLineEnd(bytes[at])) at++;
    if (bytes[at] === carriageReturn) at++;
    if (at === bytes.length) return end;
    end = bytes[at] === lineFeed ? at + 1 : at;
  }
  return end;
}

const fieldNames = ["data:", "event:", "id:", "retry:", ":"];

/** Whether bytes are the beginning of an event stream; undefined if they are too few to tell. */
export function beginsEvents(bytes: Uint8Array): boolean | undefined {
  const text = Buffer.from(bytes.subarray(0, 16))
    .toString("latin1")
    .replace(/^(?:\xef\xbb\xbf)?[\r\n]*/, "");
  if (fieldNames.some((name) => text.startsWith(name))) return true;
  const mayBegin = fieldNames.some((name) => name.startsWith(text)) || "\xef\xbb\xbf".startsWith(text);
  return mayBegin && bytes.length < 16 ? undefined : false;
}

/** @param at of a line end */
function endsEmptyLine(bytes: Uint8Array, before: Uint8Array, at: number): boolean {
  const previous = at >= 1 ? bytes[at - 1] : before.at(-1);
  const isCrLf = bytes[at] === lineFeed && previous === carriageReturn;
  if (!isCrLf) return isLineEnd(previous);
  return isLineEnd(at >= 2 ? bytes[at - 2] : before.at(at - 2));
}

const lineFeeds = 0x0a0a0a0a;

/** Where in an event stream the next byte goes. */
export type Position = "between events" | "between lines" | "inside a line";

interface EventBoundary {
  passed(bytes: Uint8Array): void;
  position(): Position;
}

/** Tracks, by an event stream's last few bytes, whether something else may be inserted. */
export function createEventBoundary(): EventBoundary {
  /** The last four bytes, the latest lowest. A stream starts as if an empty line came before it. */
  let tail = lineFeeds;
  return {
    passed(bytes) {
      if (endInLineFeeds(bytes)) tail = lineFeeds;
      else for (let at = Math.max(0, bytes.length - 4); at < bytes.length; at++) tail = (tail << 8) | (bytes[at] ?? 0);
    },
    position() {
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

/** The most that is held of one event, wherever it is held. A longer one passes before its end has come. */
export const maxHeldEventBytes = 64 * 1024;

/** The bytes of an event whose end has not come. */
interface UnfinishedEvent {
  /** The first of the bytes that are held; undefined if there are none. */
  first(): number | undefined;
  /** @returns undefined if they are held; if they are too many, all bytes of the event so far, and nothing is held */
  add(bytes: Uint8Array): Uint8Array | undefined;
  /** @returns the event so far with `last` at its end, and begins the next one */
  take(last: Uint8Array): Uint8Array;
}

const nothing = new Uint8Array();

export function createUnfinishedEvent(): UnfinishedEvent {
  /**
   * Memory of its own, of which `length` bytes are used: a view would keep the whole chunk that it shows, and thousands of
   * views of a byte each would take a hundred times the memory of their bytes.
   */
  let held = nothing;
  let length = 0;

  function take(last: Uint8Array): Uint8Array {
    if (length === 0) return last;
    const bytes = held.subarray(0, length);
    held = nothing;
    length = 0;
    return last.length === 0 ? bytes : Buffer.concat([bytes, last]);
  }

  return {
    first: () => (length === 0 ? undefined : held[0]),
    add(bytes) {
      const needed = length + bytes.length;
      if (needed > maxHeldEventBytes) return take(bytes);
      if (needed > held.length) {
        const larger = new Uint8Array(Math.min(maxHeldEventBytes, Math.max(needed, 2 * held.length)));
        larger.set(held.subarray(0, length));
        held = larger;
      }
      held.set(bytes, length);
      length = needed;
      return undefined;
    },
    take,
  };
}

interface EventSplitterHandler {
  /** A whole event, with the empty line that ends it; or a comment line between events, or an empty line. */
  event(bytes: Uint8Array): void;
  /** The next bytes of an event that is too long to be held; the last of them end in its empty line. */
  longEvent(bytes: Uint8Array): void;
}

interface EventSplitter {
  push(bytes: Uint8Array): void;
  /** @returns the rest, which no empty line ends */
  end(): Uint8Array;
}

/**
 * Cuts an event stream into its events without losing a byte, and holds no more than `maxHeldEventBytes` of one. Lines end in
 * LF or CRLF; no backend ends them in a bare CR, and such a stream is one event, which no empty line ends.
 */
export function createEventSplitter(handler: EventSplitterHandler): EventSplitter {
  const unfinished = createUnfinishedEvent();
  /** The unfinished event was too long to hold, and its first bytes were passed. */
  let isLong = false;
  /** The unfinished line has nothing, or nothing but a CR, so far. */
  let lineMayBeEmpty = true;
  /** The first byte of the unfinished event. A colon: its first line is a comment, which is passed at its end. */
  let firstByte: number | undefined;

  function isEmptyLine(bytes: Uint8Array, from: number, to: number): boolean {
    return lineMayBeEmpty && (from === to || (to - from === 1 && bytes[from] === carriageReturn));
  }

  function endEvent(last: Uint8Array): void {
    if (isLong) handler.longEvent(last);
    else handler.event(unfinished.take(last));
    isLong = false;
    firstByte = undefined;
  }

  function hold(bytes: Uint8Array): void {
    const passed = isLong ? bytes : unfinished.add(bytes);
    if (passed === undefined) return;
    isLong = true;
    handler.longEvent(passed);
  }

  return {
    push(bytes) {
      let eventStart = 0;
      let lineStart = 0;
      for (let end = bytes.indexOf(lineFeed); end >= 0; end = bytes.indexOf(lineFeed, lineStart)) {
        const isComment = (firstByte ?? bytes[eventStart]) === colon;
        if (isComment || isEmptyLine(bytes, lineStart, end)) {
          endEvent(eventStart === 0 && end + 1 === bytes.length ? bytes : bytes.subarray(eventStart, end + 1));
          eventStart = end + 1;
        }
        lineStart = end + 1;
        lineMayBeEmpty = true;
      }
      if (lineStart < bytes.length) lineMayBeEmpty = isEmptyLine(bytes, lineStart, bytes.length);
      if (eventStart === bytes.length) return;
      firstByte ??= bytes[eventStart];
      hold(bytes.subarray(eventStart));
    },
    end: () => unfinished.take(new Uint8Array()),
  };
}
