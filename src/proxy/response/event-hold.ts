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

/**
 * Holds back the bytes of an unfinished event, so that an error frame never follows half an event, and the terminal event,
 * so that no client sees an end that is not counted.
 */
export function createEventHold(terminalEvents: TerminalEvents): EventHold {
  /** The unfinished event. Empty while `overflows`. */
  let held: Uint8Array[] = [];
  let heldBytes = 0;
  /** The unfinished event was too long to hold, and its first bytes were sent. */
  let overflows = false;
  /** It is a terminal one: then its last line waits. */
  let overflowIsTerminal = false;
  /** The last bytes that were pushed, whether sent or held. */
  let tail: Uint8Array = nothing;
  let terminal: Uint8Array | undefined;
  let released = false;

  function takeHeld(last: Uint8Array): Uint8Array {
    if (held.length === 0) return last;
    const all = Buffer.concat([...held, last]);
    held = [];
    heldBytes = 0;
    return all;
  }

  function hold(bytes: Uint8Array): Uint8Array {
    if (bytes.length === 0) return nothing;
    held.push(bytes);
    heldBytes += bytes.length;
    if (heldBytes <= maxHeldBytes) return nothing;
    const start = takeHeld(nothing);
    overflows = true;
    overflowIsTerminal = terminalEvents.mayBeIn(start) && terminalEvents.isTerminal(start);
    return start;
  }

  /** @param events whole ones, and what follows them in the same chunk */
  function passEvents(events: Uint8Array, rest: Uint8Array): Uint8Array {
    const start = terminalEvents.mayBeIn(events) ? findTerminal(events, terminalEvents) : undefined;
    if (start !== undefined) {
      terminal = Buffer.concat([events.subarray(start), rest]);
      return events.subarray(0, start);
    }
    const overflow = hold(rest);
    return overflow.length === 0 ? events : Buffer.concat([events, overflow]);
  }

  /** The bytes of a long event that was begun, up to its end if that is among them. */
  function passOverflow(bytes: Uint8Array): Uint8Array {
    const end = firstEventEnd(bytes, tail);
    if (end === 0) {
      keepTail(bytes);
      return bytes;
    }
    overflows = false;
    if (overflowIsTerminal) {
      let lineEnds = end;
      while (lineEnds > 0 && isLineEnd(bytes[lineEnds - 1])) lineEnds--;
      terminal = bytes.subarray(lineEnds);
      return bytes.subarray(0, lineEnds);
    }
    keepTail(bytes.subarray(0, end));
    const following = push(bytes.subarray(end));
    return Buffer.concat([bytes.subarray(0, end), following]);
  }

  function keepTail(bytes: Uint8Array): void {
    tail = bytes.length >= 3 ? bytes.subarray(-3) : Buffer.concat([tail, bytes]).subarray(-3);
  }

  function push(bytes: Uint8Array): Uint8Array {
    if (released || bytes.length === 0) return bytes;
    if (overflows) return passOverflow(bytes);
    const end = lastEventEnd(bytes, tail);
    keepTail(bytes);
    if (end === 0) return hold(bytes);
    return passEvents(takeHeld(end === bytes.length ? bytes : bytes.subarray(0, end)), bytes.subarray(end));
  }

  return {
    push,
    takeTerminal() {
      const taken = terminal;
      if (taken !== undefined) released = true;
      terminal = undefined;
      return taken;
    },
    end: () => takeHeld(nothing),
  };
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
