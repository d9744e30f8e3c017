import { indexOfBytes, latin1 } from "../json/bytes.ts";
import { firstEventEnd, maxHeldEventBytes } from "../sse/events.ts";
import { createEventStreamParser } from "../sse/parser.ts";
import { createJsonUsageParser } from "../usage/json-usage.ts";
import { isObject } from "../usage/event-usage.ts";

/** Finds the event that ends a stream for its client, on whatever path it is sent. */
interface TerminalFinder {
  /** @param events whole ones @returns where the first terminal one begins and ends */
  find(events: Uint8Array): { start: number; end: number } | undefined;
  /** Whether `find` would find none, and learn nothing. */
  findsNone(events: Uint8Array): boolean;
  /** Follows an event that is too long to be held. @param start its first bytes */
  follow(start: Uint8Array): LongEvent;
}

export interface LongEvent {
  push(bytes: Uint8Array): void;
  /** Called when its end is pushed. */
  isTerminal(): boolean;
}

/*
 * `data: [DONE]` ends a stream of the OpenAI dialects, `message_stop` one of the Messages API, `response.completed`,
 * `.incomplete` and `.failed` one of the Responses API.
 */
const done = Buffer.from("[DONE]");
const messageStop = Buffer.from("message_stop");
const responseEnds = ["response.completed", "response.incomplete", "response.failed"].map((name) => Buffer.from(name));

/** One of these is in every terminal event. */
type Markers = readonly Uint8Array[];
const anyMarkers: Markers = [done, messageStop, ...responseEnds];

/** Each marker is searched in all bytes, so a stream is searched for those of its dialect. */
interface Dialect {
  markers: Markers;
  /** Whether bytes begin as its events do. Others are searched for the end of any dialect. */
  fits: (events: Uint8Array) => boolean;
}

// `data: {"id"`, and not `data: {"type"`.
const completions: Dialect = { markers: [done], fits: (events) => events[0] === letterD && events[8] !== letterT };
// `event: message_…`, `event: content_…`, and not `event: response.…`
const messages: Dialect = {
  markers: [done, messageStop],
  fits: (events) => events[0] === letterE && events[7] !== letterR,
};
const responses: Dialect = {
  markers: [done, ...responseEnds],
  fits: (events) => events[0] === letterE && events[7] === letterR,
};
const anyDialect: Dialect = { markers: anyMarkers, fits: () => true };
const [letterD, letterE, letterR, letterT] = [0x64, 0x65, 0x72, 0x74];

/** A dialect shows in a stream's first events, or not at all. */
const maxLearnedEvents = 8;

export function createTerminalFinder(): TerminalFinder {
  let dialect = anyDialect;
  let learned = 0;

  function learn(events: Uint8Array): void {
    learned += 1;
    dialect = dialectOf(events.subarray(0, firstEventEnd(events, nothing))) ?? anyDialect;
  }

  const mayLearn = (): boolean => dialect === anyDialect && learned < maxLearnedEvents;
  const markersIn = (events: Uint8Array): Markers => (dialect.fits(events) ? dialect.markers : anyMarkers);

  return {
    find(events) {
      if (mayLearn()) learn(events);
      const markers = markersIn(events);
      return mayHoldOne(events, markers) ? findTerminal(events, markers) : undefined;
    },
    findsNone: (events) => !mayLearn() && !mayHoldOne(events, markersIn(events)),
    follow: (start) =>
      dialect === completions && dialect.fits(start) ? { push() {}, isTerminal: () => false } : followEvent(start),
  };
}

const nothing = new Uint8Array();

/** Whether a terminal event may be in `bytes`: false for nearly all. */
function mayHoldOne(bytes: Uint8Array, markers: Markers): boolean {
  for (const marker of markers) if (indexOfBytes(bytes, marker, 0) >= 0) return true;
  return false;
}

function findTerminal(events: Uint8Array, markers: Markers): { start: number; end: number } | undefined {
  let start = 0;
  while (start < events.length) {
    const length = firstEventEnd(events.subarray(start), nothing);
    const end = length === 0 ? events.length : start + length;
    const event = events.subarray(start, end);
    if (mayHoldOne(event, markers) && isTerminal(event)) return { start, end };
    start = end;
  }
  return undefined;
}

const mark = "(?:\xef\xbb\xbf)?";
const doneLine = new RegExp(`^${mark}data:[ \\t]*\\[DONE\\]`, "m");
const eventLine = new RegExp(`^${mark}event: ?(\\S*)`, "m");
const typeFirst = new RegExp(`^${mark}data: ?\\{\\s*"type"\\s*:\\s*"([^"\\\\]*)"`, "m");
const terminalName = /^(?:message_stop|response\.(?:completed|incomplete|failed))$/;

/** Names stand near the start of an event; only in its JSON can the type come later. */
const headBytes = 512;

const headOf = (event: Uint8Array): string => latin1(event, 0, Math.min(event.length, headBytes));
const nameIn = (head: string): string => eventLine.exec(head)?.[1] ?? "";
const typeIn = (head: string): string | undefined => typeFirst.exec(head)?.[1];

/** Some clients go by the `event:` line, some by the `type`. @param event a whole one */
function isTerminal(event: Uint8Array): boolean {
  return doneLine.test(headOf(event)) || followEvent(event).isTerminal();
}

function followEvent(start: Uint8Array): LongEvent {
  const head = headOf(start);
  const [name, type] = [nameIn(head), typeIn(head)];
  if (type !== undefined || terminalName.test(name)) {
    const endsStream = terminalName.test(name) || terminalName.test(type ?? "");
    return { push() {}, isTerminal: () => endsStream };
  }
  const json = createJsonUsageParser();
  const lines = createEventStreamParser({ data: json.push, dispatch() {} });
  lines.push(start);
  return { push: lines.push, isTerminal: () => terminalName.test(typeOf(json.document())) };
}

function typeOf(document: unknown): string {
  return isObject(document) && typeof document.type === "string" ? document.type : "";
}

/** @returns undefined if the event does not show it */
function dialectOf(event: Uint8Array): Dialect | undefined {
  if (event.length === 0 || event.length > maxHeldEventBytes) return undefined;
  const head = headOf(event);
  const name = typeIn(head) ?? nameIn(head);
  if (name.startsWith("response.")) return responses;
  if (name === "message_start") return messages;
  return name === "" && hasChoices(event) ? completions : undefined;
}

function hasChoices(event: Uint8Array): boolean {
  try {
    const json: unknown = JSON.parse(/^data:(.*)$/m.exec(latin1(event))?.[1] ?? "");
    return isObject(json) && Array.isArray(json.choices);
  } catch {
    return false;
  }
}
