import {
  beginsEvents,
  commentsEnd,
  firstEventEnd,
  isLineEnd,
  lastEventEnd,
  createUnfinishedEvent,
  maxHeldEventBytes,
} from "../sse/events.ts";
import { findTerminal, followEvent, type LongEvent } from "./terminal-event.ts";

/** What of an event stream may go to the client now. */
export interface EventHold {
  /** @returns the bytes that may be sent: whole events, up to the terminal one */
  push(bytes: Uint8Array): Uint8Array;
  /** The terminal event and what came with it, once: to be sent when its count is committed. Nothing is held afterwards. */
  takeTerminal(): Uint8Array | undefined;
  /** @returns the unfinished event at the end of the stream */
  end(): Uint8Array;
}

const nothing = new Uint8Array();
const lineFeed = 0x0a;
const colon = 0x3a;
const lineFeeds = Uint8Array.of(lineFeed, lineFeed);

/**
 * Holds back the bytes of an unfinished event, so that an error frame never follows half an event, and the terminal event,
 * so that no client sees an end that is not counted.
 *
 * It is in one of four states: between events; inside an event whose bytes wait in `unfinished`; inside one that became too
 * long to wait (`overflow`), whose bytes pass as they come; or past the terminal event (`terminal`, then `released`).
 * - Bytes leave in the order in which they came: by `push`, then by `takeTerminal`, then by `end`.
 * - At most `maxHeldEventBytes` of an event wait. If a terminal event is longer, only its last line end waits.
 * - Nothing here survives the process: what waits has not been sent, so the client sees a response without its end.
 */
export function createEventHold(): EventHold {
  const unfinished = createUnfinishedEvent();
  /** The unfinished event was too long to hold, and its first bytes were sent. */
  let overflow: LongEvent | undefined;
  /** The last bytes that were pushed, whether sent or held; line feeds stand for any end of an event. */
  let tail: Uint8Array = nothing;
  let terminal: Uint8Array | undefined;
  let released = false;

  function hold(bytes: Uint8Array): Uint8Array {
    const isComment = (unfinished.first() ?? bytes[0]) === colon;
    if (isComment && bytes.includes(lineFeed)) return passComments(unfinished.take(bytes));
    const start = unfinished.add(bytes);
    if (start === undefined) return nothing;
    overflow = followEvent(start);
    return start;
  }

  /** Whole comment lines between events wait for nothing: they belong to none. */
  function passComments(bytes: Uint8Array): Uint8Array {
    const end = commentsEnd(bytes);
    return joined(bytes.subarray(0, end), end === bytes.length ? nothing : hold(bytes.subarray(end)));
  }

  /** @param events whole ones, and what follows them in the same chunk */
  function passEvents(events: Uint8Array, rest: Uint8Array): Uint8Array {
    const found = findTerminal(events);
    if (found === undefined) return rest.length === 0 ? events : joined(events, hold(rest));
    const isLong = found.end - found.start > maxHeldEventBytes;
    const start = isLong ? lineEndsBefore(events, found.end) : found.start;
    terminal = joined(events.subarray(start), rest);
    return events.subarray(0, start);
  }

  /** The bytes of a long event that was begun, up to its end if that is among them. Of a terminal one the last line waits. */
  function passOverflow(bytes: Uint8Array, event: LongEvent): Uint8Array {
    const end = firstEventEnd(bytes, tail);
    tail = end === 0 ? lastThree(tail, bytes) : lineFeeds;
    event.push(end === 0 ? bytes : bytes.subarray(0, end));
    if (end === 0) return bytes;
    overflow = undefined;
    if (!event.isTerminal()) return joined(bytes.subarray(0, end), push(bytes.subarray(end)));
    const start = lineEndsBefore(bytes, end);
    terminal = bytes.subarray(start);
    return bytes.subarray(0, start);
  }

  function push(bytes: Uint8Array): Uint8Array {
    if (released || bytes.length === 0) return bytes;
    if (overflow !== undefined) return passOverflow(bytes, overflow);
    const end = lastEventEnd(bytes, tail);
    // Nearly all: no view of the chunk, which would give it a buffer of its own (Bun 1.4.5).
    if (end === bytes.length) {
      tail = lineFeeds;
      return passEvents(unfinished.take(bytes), nothing);
    }
    tail = lastThree(tail, bytes);
    if (end === 0) return hold(bytes);
    return passEvents(unfinished.take(bytes.subarray(0, end)), bytes.subarray(end));
  }

  return {
    push,
    takeTerminal() {
      const taken = terminal;
      if (taken !== undefined) released = true;
      terminal = undefined;
      return taken;
    },
    end: () => unfinished.take(nothing),
  };
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array {
  if (second.length === 0) return first;
  return first.length === 0 ? second : Buffer.concat([first, second]);
}

/** Copies the last three of all bytes so far: a view would keep the chunk. */
function lastThree(before: Uint8Array, bytes: Uint8Array): Uint8Array {
  const three = bytes.length >= 3 ? bytes.subarray(-3) : Buffer.concat([before, bytes]).subarray(-3);
  return new Uint8Array(three);
}

/** Where the line ends begin that end an event. */
function lineEndsBefore(bytes: Uint8Array, eventEnd: number): number {
  let start = eventEnd;
  while (start > 0 && isLineEnd(bytes[start - 1])) start--;
  return start;
}

/**
 * A hold for a body that may be an event stream although its type does not say so: small servers set `text/plain`, or
 * none. Its first bytes tell; nothing is held of any other.
 */
export function createSniffingHold(): EventHold {
  const start = createUnfinishedEvent();
  const events = createEventHold();
  let hold: EventHold | undefined;
  return {
    push(bytes) {
      if (hold !== undefined) return hold.push(bytes);
      const all = start.take(bytes);
      const begins = beginsEvents(all);
      if (begins === undefined) return start.add(all) ?? nothing;
      hold = begins ? events : passAll;
      return hold.push(all);
    },
    takeTerminal: () => hold?.takeTerminal(),
    end: () => hold?.end() ?? start.take(nothing),
  };
}

const passAll: EventHold = {
  push: (bytes) => bytes,
  takeTerminal: () => undefined,
  end: () => nothing,
};
