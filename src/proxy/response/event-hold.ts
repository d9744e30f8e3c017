import { createEventSplitter } from "../sse/event-splitter.ts";
import { firstEventEnd, isLineEnd, lastEventEnd } from "../sse/event-end.ts";
import type { TerminalEvents } from "./terminal-event.ts";

/** What of an event stream may go to the client now. */
export interface EventHold {
  /** @returns the bytes that may be sent: whole events, up to the terminal one */
  push(bytes: Uint8Array): Uint8Array;
  /** The terminal event and what came with it, once: to be sent when its count is committed. Nothing is held afterwards. */
  takeTerminal(): Uint8Array | undefined;
  /** @returns the unfinished event at the end of the stream */
  end(): Uint8Array;
}

/** An unfinished event waits for its end up to this length. */
const maxHeldBytes = 64 * 1024;
const nothing = new Uint8Array();
const lineFeeds = Uint8Array.of(0x0a, 0x0a);

/** The bytes of an event whose end has not come. */
function createUnfinishedEvent() {
  let pieces: Uint8Array[] = [];
  let length = 0;
  return {
    add(bytes: Uint8Array): void {
      if (bytes.length > 0) pieces.push(bytes);
      length += bytes.length;
    },
    length: () => length,
    /** @returns the event so far with `last` at its end, and begins the next one */
    take(last: Uint8Array): Uint8Array {
      if (pieces.length === 0) return last;
      const all = Buffer.concat([...pieces, last]);
      pieces = [];
      length = 0;
      return all;
    },
  };
}

/**
 * Holds back the bytes of an unfinished event, so that an error frame never follows half an event, and the terminal event,
 * so that no client sees an end that is not counted.
 */
export function createEventHold(terminalEvents: TerminalEvents): EventHold {
  const unfinished = createUnfinishedEvent();
  /** The unfinished event was too long to hold, and its first bytes were sent. */
  let overflow: { isTerminal: boolean } | undefined;
  /** The last bytes that were pushed, whether sent or held; line feeds stand for any end of an event. */
  let tail: Uint8Array = nothing;
  let terminal: Uint8Array | undefined;
  let released = false;

  function hold(bytes: Uint8Array): Uint8Array {
    unfinished.add(bytes);
    if (unfinished.length() <= maxHeldBytes) return nothing;
    const start = unfinished.take(nothing);
    overflow = { isTerminal: terminalEvents.mayBeIn(start) && terminalEvents.isTerminal(start) };
    return start;
  }

  /** @param events whole ones, and what follows them in the same chunk */
  function passEvents(events: Uint8Array, rest: Uint8Array): Uint8Array {
    const start = terminalEvents.mayBeIn(events) ? findTerminal(events, terminalEvents) : undefined;
    if (start === undefined) return joined(events, hold(rest));
    terminal = joined(events.subarray(start), rest);
    return events.subarray(0, start);
  }

  /** The bytes of a long event that was begun, up to its end if that is among them. Of a terminal one the last line waits. */
  function passOverflow(bytes: Uint8Array, isTerminal: boolean): Uint8Array {
    const end = firstEventEnd(bytes, tail);
    tail = end === 0 ? lastThree(tail, bytes) : lineFeeds;
    if (end === 0) return bytes;
    overflow = undefined;
    if (!isTerminal) return joined(bytes.subarray(0, end), push(bytes.subarray(end)));
    let lineEnds = end;
    while (lineEnds > 0 && isLineEnd(bytes[lineEnds - 1])) lineEnds--;
    terminal = bytes.subarray(lineEnds);
    return bytes.subarray(0, lineEnds);
  }

  function push(bytes: Uint8Array): Uint8Array {
    if (released || bytes.length === 0) return bytes;
    if (overflow !== undefined) return passOverflow(bytes, overflow.isTerminal);
    const end = lastEventEnd(bytes, tail);
    tail = end === bytes.length ? lineFeeds : lastThree(tail, bytes);
    if (end === 0) return hold(bytes);
    return passEvents(unfinished.take(end === bytes.length ? bytes : bytes.subarray(0, end)), bytes.subarray(end));
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

/** Of all bytes so far. */
function lastThree(before: Uint8Array, bytes: Uint8Array): Uint8Array {
  return bytes.length >= 3 ? bytes.slice(-3) : Buffer.concat([before, bytes]).subarray(-3);
}

/** Where the terminal event begins. */
function findTerminal(events: Uint8Array, { isTerminal }: TerminalEvents): number | undefined {
  const splitter = createEventSplitter();
  let at = 0;
  for (const event of [...splitter.push(events), splitter.end()]) {
    if (isTerminal(event)) return at;
    at += event.length;
  }
  return undefined;
}
