import { firstEventEnd, isLineEnd, lastEventEnd, createUnfinishedEvent, maxHeldEventBytes } from "../sse/events.ts";
import { indexOfBytes, latin1 } from "../json/bytes.ts";

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
const carriageReturn = 0x0d;
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
 * @param path the request's; determines which dialects are possible, and so what has to be looked for
 */
export function createEventHold(path: string): EventHold {
  const markers: readonly Uint8Array[] = [
    done,
    ...(path.includes("/messages") ? [messageStop] : []),
    ...(path.includes("/responses") ? responseEnds : []),
  ];
  const unfinished = createUnfinishedEvent();
  /** The unfinished event was too long to hold, and its first bytes were sent. */
  let overflow: { endsStream: boolean } | undefined;
  /** The last bytes that were pushed, whether sent or held; line feeds stand for any end of an event. */
  let tail: Uint8Array = nothing;
  let terminal: Uint8Array | undefined;
  let released = false;

  function hold(bytes: Uint8Array): Uint8Array {
    const start = unfinished.add(bytes);
    if (start === undefined) return nothing;
    overflow = { endsStream: mayHoldOne(start, markers) && isTerminal(start) };
    return start;
  }

  /** @param events whole ones, and what follows them in the same chunk */
  function passEvents(events: Uint8Array, rest: Uint8Array): Uint8Array {
    const found = mayHoldOne(events, markers) ? findTerminal(events) : undefined;
    if (found === undefined) return joined(events, hold(rest));
    const isLong = found.end - found.start > maxHeldEventBytes;
    const start = isLong ? lineEndsBefore(events, found.end) : found.start;
    terminal = joined(events.subarray(start), rest);
    return events.subarray(0, start);
  }

  /** The bytes of a long event that was begun, up to its end if that is among them. Of a terminal one the last line waits. */
  function passOverflow(bytes: Uint8Array, endsStream: boolean): Uint8Array {
    const end = firstEventEnd(bytes, tail);
    tail = end === 0 ? lastThree(tail, bytes) : lineFeeds;
    if (end === 0) return bytes;
    overflow = undefined;
    if (!endsStream) return joined(bytes.subarray(0, end), push(bytes.subarray(end)));
    const start = lineEndsBefore(bytes, end);
    terminal = bytes.subarray(start);
    return bytes.subarray(0, start);
  }

  function push(bytes: Uint8Array): Uint8Array {
    if (released || bytes.length === 0) return bytes;
    if (overflow !== undefined) return passOverflow(bytes, overflow.endsStream);
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

/** Where the terminal event begins and ends. Events end in an empty line, after LF or CRLF. */
function findTerminal(events: Uint8Array): { start: number; end: number } | undefined {
  let start = 0;
  let lineStart = 0;
  for (let lineEnd = events.indexOf(lineFeed); lineEnd >= 0; lineEnd = events.indexOf(lineFeed, lineStart)) {
    const isEmpty = lineEnd === lineStart || (lineEnd === lineStart + 1 && events[lineStart] === carriageReturn);
    lineStart = lineEnd + 1;
    if (!isEmpty) continue;
    if (isTerminal(events.subarray(start, lineStart))) return { start, end: lineStart };
    start = lineStart;
  }
  return isTerminal(events.subarray(start)) ? { start, end: events.length } : undefined;
}

/*
 * `data: [DONE]` ends a stream of the OpenAI dialects, `message_stop` one of the Messages API, `response.completed`,
 * `.incomplete` and `.failed` one of the Responses API.
 */
const done = Buffer.from("[DONE]");
const messageStop = Buffer.from("message_stop");
const responseEnds = ["response.completed", "response.incomplete", "response.failed"].map((name) => Buffer.from(name));

const doneLine = /^data: ?\[DONE\][ \t]*\r?$/m;
const endName = "(?:message_stop|response\\.(?:completed|incomplete|failed))";
const eventLine = new RegExp(`^event: ?${endName}[ \\t]*\\r?$`, "m");
const typeMember = new RegExp(`^data: ?\\{\\s*"type"\\s*:\\s*"${endName}"`, "m");
const wholeType = new RegExp(`^${endName}$`);

/** Names stand near the start of an event; only in its JSON can the type come later. */
const headBytes = 512;

/** Whether a terminal event may be in `bytes`: false for nearly all. */
function mayHoldOne(bytes: Uint8Array, markers: readonly Uint8Array[]): boolean {
  for (const marker of markers) if (indexOfBytes(bytes, marker, 0) >= 0) return true;
  return false;
}

/** @param event one whole event, or the first bytes of a long one */
function isTerminal(event: Uint8Array): boolean {
  const text = latin1(event, 0, Math.min(event.length, headBytes));
  if (doneLine.test(text) || eventLine.test(text) || typeMember.test(text)) return true;
  return !/^event:/m.test(text) && wholeType.test(typeOf(event));
}

/** The `type` of an event's JSON, wherever it stands; empty if it has none. */
function typeOf(event: Uint8Array): string {
  const data = /^data:(.*)$/m.exec(Buffer.from(event.buffer, event.byteOffset, event.byteLength).toString())?.[1];
  try {
    const value: unknown = JSON.parse(data ?? "");
    return typeof value === "object" && value !== null && "type" in value ? String(value.type) : "";
  } catch {
    return "";
  }
}
