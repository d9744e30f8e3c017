import { indexOfBytes, latin1 } from "../json/bytes.ts";
import { isObject } from "../usage/event-usage.ts";
import { createJsonUsageParser, mentionsUsage } from "../usage/json-usage.ts";
import { createDataReader } from "./events.ts";

/*
 * `data: [DONE]` ends a stream of the OpenAI dialects, `message_stop` one of the Messages API, `response.completed`,
 * `.incomplete` and `.failed` one of the Responses API.
 */
const done = Buffer.from("[DONE]");
const messageStop = Buffer.from("message_stop");
const responseEnds = ["response.completed", "response.incomplete", "response.failed"].map((name) => Buffer.from(name));

/** One of these is in every terminal event. */
const markers: readonly Uint8Array[] = [done, messageStop, ...responseEnds];

/** Longer events are searched by the runtime, which is quicker at it once its call has paid. */
const maxLookedThrough = 1024;

/**
 * Whether whole events only carry content, as nearly all do: none of them ends the stream, and none has usage but null.
 * False for some that do.
 */
export function carryOnlyContent(events: Uint8Array): boolean {
  if (events.length > maxLookedThrough) return !mayHoldOne(events) && !mentionsUsage(events);
  for (let at = 0; at < events.length; at++) {
    if (isLookedAt[events[at] ?? 0] === 1 && beginsSign(events, at)) return false;
  }
  return true;
}

const isLookedAt = new Uint8Array(256);
for (const sign of '["\\_.') isLookedAt[sign.charCodeAt(0)] = 1;

/** By letters that are nowhere else in usual events: looking at whole words costs more than it saves. */
function beginsSign(events: Uint8Array, at: number): boolean {
  switch (events[at] ?? 0) {
    // [DONE]
    case 0x5b:
      return events[at + 1] === 0x44;
    // usage", but for "usage":null, which SGLang has in each event
    case 0x22:
      return events[at - 1] === 0x65 && events[at - 2] === 0x67 && !isNullMember(events, at);
    // \u00: a letter of a name may be written like this.
    case 0x5c:
      return events[at + 1] === 0x75 && events[at + 2] === 0x30 && events[at + 3] === 0x30;
    // message_stop, not content_block_stop
    case 0x5f:
      return events[at + 1] === 0x73 && events[at - 1] === 0x65;
    // response.completed, .incomplete and .failed, by their third letters
    default: {
      const third = events[at + 3];
      return events[at - 1] === 0x65 && (third === 0x6d || third === 0x63 || third === 0x69);
    }
  }
}

/** @param at the last quote of the member's name */
const isNullMember = (events: Uint8Array, at: number): boolean => events[at + 1] === 0x3a && events[at + 2] === 0x6e;

/** Whether a terminal event may be in `bytes`: false for nearly all. */
const mayHoldOne = (bytes: Uint8Array): boolean => markers.some((marker) => indexOfBytes(bytes, marker, 0) >= 0);

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

/** By its name, or by its type if that comes first; some clients go by the one, some by the other. Undefined: neither tells. */
function endsByHead(event: Uint8Array): boolean | undefined {
  const head = headOf(event);
  if (doneLine.test(head)) return true;
  const [name, type] = [nameIn(head), typeIn(head)];
  if (type === undefined && !terminalName.test(name)) return undefined;
  return terminalName.test(name) || terminalName.test(type ?? "");
}

/** Whether a whole event ends its stream, on whatever path that is sent. */
export function endsStream(event: Uint8Array): boolean {
  return mayHoldOne(event) && (endsByHead(event) ?? followText(event).endsStream());
}

/** A text that is too long to be held: what is read of it as it passes. */
export interface LongText {
  push(bytes: Uint8Array): void;
  /** What `JSON.parse` would return for what was pushed, without what nobody asks for. */
  document(): unknown;
  length(): number;
  /** Called when its end is pushed. */
  endsStream(): boolean;
}

/** @param isEvent its text is the data of the event that is pushed, and not all of that */
export function followText(start: Uint8Array, isEvent = true): LongText {
  const json = createJsonUsageParser();
  const ends = isEvent ? endsByHead(start) : false;
  let length = 0;
  const read = (bytes: Uint8Array): void => {
    length += bytes.length;
    json.push(bytes);
  };
  const push = isEvent ? createDataReader(read) : read;
  push(start);
  return {
    push,
    document: json.document,
    length: () => length,
    endsStream: () => ends ?? terminalName.test(typeOf(json.document())),
  };
}

function typeOf(document: unknown): string {
  return isObject(document) && typeof document.type === "string" ? document.type : "";
}
