import { indexOfBytes, latin1, utf8 } from "../json/bytes.ts";
import { createUsageParser, findShortJson, isObject, mentionsUsage } from "./usage.ts";
import { DataReader, dataOf } from "./events.ts";

/*
 * `data: [DONE]` ends a stream of the OpenAI dialects, `message_stop` one of the Messages API, `response.completed`,
 * `.incomplete` and `.failed` one of the Responses API.
 */
const done = Buffer.from("[DONE]");
const messageStop = Buffer.from("message_stop");
const responseEnds = ["response.completed", "response.incomplete", "response.failed"].map((name) => Buffer.from(name));

/** One of these is in every terminal event. */
const markers: readonly Uint8Array[] = [done, messageStop, ...responseEnds];

const errorWord = Buffer.from("error");
const failedName = Buffer.from("response.failed");

/** Longer events are searched by the runtime, which is quicker at it once its call has paid. */
const maxLookedThrough = 1024;

/**
 * Whether whole events only carry content, as nearly all do: none of them ends the stream, and none has usage or an error
 * but null. False for some that do.
 */
export function carryOnlyContent(events: Uint8Array): boolean {
  const isLong = events.length > maxLookedThrough;
  if (isLong && indexOfBytes(events, errorWord, 0) < 0) return !mayHoldOne(events) && !mentionsUsage(events);
  if (events[0] === letterE && namesError(events, 0)) return false;
  for (let at = 0; at < events.length; at++) {
    const byte = events[at] ?? 0;
    // Apart, since the runtime inlines only what is short.
    if (isLookedAt[byte] === 1 && (byte === quote ? endsName(events, at) : beginsSign(events, at))) return false;
  }
  return true;
}

const quote = 0x22;
const letterE = 0x65;
const isLookedAt = new Uint8Array(256);
for (const sign of '["\\_.\n') isLookedAt[sign.charCodeAt(0)] = 1;

/** By letters that are nowhere else in usual events: looking at whole words costs more than it saves. */
function beginsSign(events: Uint8Array, at: number): boolean {
  switch (events[at] ?? 0) {
    // [DONE]
    case 0x5b:
      return events[at + 1] === 0x44;
    // Reading past the end would slow down all reads.
    case 0x0a:
      return at + 1 < events.length && events[at + 1] === letterE && namesError(events, at + 1);
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

/** usage" or "error", but for null: SGLang has "usage":null in each event. @param at a quote */
function endsName(events: Uint8Array, at: number): boolean {
  const isName =
    events[at - 1] === letterE ? events[at - 2] === 0x67 : events[at - 6] === quote && events[at - 3] === 0x72;
  return isName && !(events[at + 1] === 0x3a && events[at + 2] === 0x6e);
}

/** `event: error`, or a field of that name, as llama.cpp sends. @param at its line begins */
function namesError(events: Uint8Array, at: number): boolean {
  const name = events[at + 6] === 0x20 ? at + 7 : at + 6;
  return events[at + 1] === 0x72 || (events[name] === letterE && events[name + 1] === 0x72);
}

/** Whether a terminal event may be in `bytes`: false for nearly all. */
function mayHoldOne(bytes: Uint8Array): boolean {
  for (const marker of markers) if (indexOfBytes(bytes, marker, 0) >= 0) return true;
  return false;
}

const mark = "(?:\xef\xbb\xbf)?";
const doneLine = new RegExp(`^${mark}data:[ \\t]*\\[DONE\\]`, "m");
const eventLine = new RegExp(`^${mark}event: ?(\\S*)`, "m");
const typeFirst = new RegExp(`^${mark}data: ?\\{\\s*"type"\\s*:\\s*"([^"\\\\]*)"`, "m");
const terminalName = /^(?:message_stop|response\.(?:completed|incomplete|failed))$/;

/** Names stand near the start of an event; only in its JSON can the type come later. */
const headBytes = 512;

const nameIn = (head: string): string => eventLine.exec(head)?.[1] ?? "";
const typeIn = (head: string): string | undefined => typeFirst.exec(head)?.[1];

/** By its name, or by its type if that comes first; some clients go by the one, some by the other. Undefined: neither tells. */
function endsByHead(event: Uint8Array): boolean | undefined {
  const head = latin1(event.subarray(0, headBytes));
  if (doneLine.test(head)) return true;
  const [name, type] = [nameIn(head), typeIn(head)];
  if (type === undefined && !terminalName.test(name)) return undefined;
  return terminalName.test(name) || terminalName.test(type ?? "");
}

/** Whether a whole event ends its stream, on whatever path that is sent. */
export function endsStream(event: Uint8Array): boolean {
  return mayHoldOne(event) && (endsByHead(event) ?? new LongText(event).endsStream());
}

/** What is read of a text that is too long to be held, as it passes. */
export class LongText {
  readonly #json = createUsageParser();
  readonly #reader: DataReader | undefined;
  readonly #ends: boolean | undefined;
  length = 0;

  /** @param isEvent its text is the data of the event that is pushed, and not all of that */
  constructor(start: Uint8Array, isEvent = true) {
    this.#reader = isEvent ? new DataReader((bytes) => this.#read(bytes)) : undefined;
    this.#ends = isEvent ? endsByHead(start) : false;
    this.push(start);
  }

  push(bytes: Uint8Array): void {
    if (this.#reader === undefined) this.#read(bytes);
    else this.#reader.push(bytes);
  }

  #read(bytes: Uint8Array): void {
    this.length += bytes.length;
    this.#json.push(bytes);
  }

  /** What `JSON.parse` would return for what was pushed, without what nobody asks for. */
  document(): unknown {
    return this.#json.document();
  }

  /** Called when its end is pushed. */
  endsStream(): boolean {
    return this.#ends ?? terminalName.test(typeOf(this.document()));
  }
}

function typeOf(document: unknown): string {
  return isObject(document) && typeof document.type === "string" ? document.type : "";
}

/** How a response failed whose status says success. */
export interface LateFailure {
  cause: "reported_error" | "empty_stream";
  /** The backend's own sentence. */
  message?: string | undefined;
  /** It speaks against the backend, and not against the request. */
  isSign: boolean;
}

/** What a response says of how it goes, beside its status. */
export class Progress {
  /** Content is waited for, and what comes before are heartbeats: each event is to be given by itself. */
  isAsked = true;
  hasContent = false;
  failure: LateFailure | undefined;

  /** @param onContent called with the first content after it is asked for */
  constructor(readonly onContent: () => void) {}

  /** @param bytes a whole event, or one that no empty line ends */
  event(bytes: Uint8Array): void {
    const text = this.isAsked ? latin1(bytes) : "";
    if (content.test(text) && !beginning.test(text)) {
      [this.isAsked, this.hasContent] = [false, true];
      this.onContent();
    }
    if (indexOfBytes(bytes, errorWord, 0) < 0 && indexOfBytes(bytes, failedName, 0) < 0) return;
    const field = errorField.exec(utf8(bytes))?.[1];
    const error = field === undefined ? undefined : { error: findShortJson(Buffer.from(field)) ?? field };
    this.failure ??= findFailure(error ?? findShortJson(dataOf(bytes)), nameIn(latin1(bytes.subarray(0, headBytes))));
  }

  /** A whole JSON answer, or a long event, as far as it is read. */
  document(document: unknown): void {
    this.hasContent ||= !beginning.test(`"type":"${typeOf(document)}"`);
    this.failure ??= findFailure(document);
  }
}

const errorField = /^\uFEFF?error: ?(.*)/m;

/** A text, or how it ended; more than a role and empty members; how the response ended; what is no object. */
const content = new RegExp(
  [
    /"(?:delta|text|content|token|finish_reason|stop_reason)"\s*:\s*"[^"]/,
    /"(?:delta|content_block)"\s*:\s*\{(?!(?:[\s,]*"(?:(?:role|type)"\s*:\s*"\w+"|\w+"\s*:\s*(?:null|""|\[\]|\{\})))*[\s,]*\})/,
    /"response\.(?:completed|incomplete)"/,
    /^data:[ \t]*(?!\[DONE\])[^\s{]/,
  ]
    .map(({ source }) => source)
    .join("|"),
  "m",
);
/** These repeat the request, whose texts are no content. */
const beginning = /"type"\s*:\s*"response\.(?:created|queued|in_progress)"/;

/** @param name of the event */
function findFailure(document: unknown, name?: string): LateFailure | undefined {
  const { error, type, response, ...others } = isObject(document) ? document : {};
  const isFailed = [type, name].includes("response.failed");
  const held = isFailed && isObject(response) ? response.error : undefined;
  const told = isFailed || [type, name].includes("error") ? others : undefined;
  const found = [error, held].find(isError) ?? told;
  if (found === undefined) return undefined;
  const { message, code, type: kind } = isObject(found) ? found : { message: found };
  const words = [code, kind].map(String);
  const status = words.find((word) => /^\d+$/.test(word));
  const isSign = status === undefined ? !words.some((word) => refusal.test(word)) : Number(status) >= 500;
  return { cause: "reported_error", message: typeof message === "string" ? sentenceIn(message) : undefined, isSign };
}

/** A text, or an object with a message, a code or a type. */
const isError = (value: unknown): boolean =>
  (isObject(value) ? [value.message, value.code, value.type] : [typeof value === "string" && value]).some(
    (word) => (typeof word === "string" && word.trim() !== "") || (typeof word === "number" && word !== 0),
  );

/** Refusals of one request, which say nothing of the backend. */
const refusal = /^(?:invalid_|context_length_exceeded$|rate_limit_|content_filter$|content_policy_violation$)|abort/i;

/** Without what engines quote of a request: the lines after the first, the value that they could not read, long quotations. */
function sentenceIn(message: string): string | undefined {
  const [sentence = ""] = message.trim().split(/[\r\n{]|\binput(?:_value)?['"]?\s*[:=]/, 1);
  return sentence.replaceAll(/(?<!\w)(["'`]).{40,}?(?:\1|$)/g, "…").slice(0, 300) || undefined;
}
