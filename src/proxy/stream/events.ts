import { latin1, partOf } from "../json/bytes.ts";
import type { Span } from "../json/slots.ts";

/*
 * The one cutter of event streams, which all that is read of a stream or done with it goes by.
 *
 * It alone holds the bytes of an event whose end has not come, and alone knows what ends a line (LF, CRLF or CR: WHATWG HTML,
 * section 9.2.6), an event (an empty line) and a comment between events (its line). It is between events; inside one whose
 * bytes it holds; or inside one that became too long to hold, whose bytes pass as pieces.
 * - All bytes that are pushed come out once, in their order: what is left at the end by `rest`.
 * - A chunk that ends with an event, as nearly every chunk does, is offered as a run first, and need not be cut at all.
 * - No event waits for a byte after its end, and none that is held ends between the CR and the LF of a CRLF.
 * It knows no streams and nothing of what events say. A byte order mark is part of the first event; `dataOf` passes over it.
 */

const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const colon = 0x3a;
const space = 0x20;

/** The most that is held of one event. A longer one passes before its end has come. */
export const maxHeldEventBytes = 64 * 1024;

interface EventHandler {
  /** Whole events after whole ones, a chunk of them. @returns whether they need not be given one by one */
  run(events: Uint8Array): boolean;
  /** A whole event, with the empty line that ends it; or a comment line between events, or empty lines. */
  event(bytes: Uint8Array): void;
  /** The next bytes of an event that is too long to be held. @param isLast they end it */
  piece(bytes: Uint8Array, isLast: boolean): void;
}

/** Where in an event stream the next byte goes, as far as it came out. */
export type Position = "between events" | "between lines" | "inside a line";

/** `ends` is what ends an event: an empty line, or each line feed, as in a text of JSON lines. */
export class Events {
  readonly #unfinished = new Unfinished();
  /** The first byte of the open event; undefined between events. A colon: it is a comment, which its first line ends. */
  #first: number | undefined;
  /** The open event was too long to hold, and its first bytes came out. */
  #isLong = false;
  #lineIsEmpty = true;
  /** The last byte was a CR, and its LF may come: the open line ends with that, or in front of another byte. */
  #isAfterCr = false;
  /** The line before the open one ended in a CR alone. Then no LF is waited for after a CR that ends an event. */
  #endsInCr = false;

  constructor(
    private readonly handler: EventHandler,
    private readonly ends: "empty line" | "line feed" = "empty line",
  ) {}

  /** @returns whether it was a run, and nothing else came out */
  push(chunk: Uint8Array): boolean {
    if (chunk.length === 0) return false;
    const isRun = this.#first === undefined && endWithEvent(chunk) && this.handler.run(chunk);
    if (!isRun) this.#cut(chunk);
    return isRun;
  }

  position(): Position {
    if (!this.#isLong) return "between events";
    return this.#lineIsEmpty && !this.#isAfterCr ? "between lines" : "inside a line";
  }

  /** @returns what is held of an event that no empty line ends, and holds it no longer */
  rest(): Uint8Array {
    return this.#unfinished.take(nothing);
  }

  #cut(chunk: Uint8Array): void {
    const { length } = chunk;
    let at = this.#isAfterCr ? this.#endLineBefore(chunk) : 0;
    let start = this.#first === undefined ? at : 0;
    // Each search continues from its last result, so that a chunk is searched once for each.
    let [lf, cr] = [-1, this.ends === "line feed" ? length : -1];
    while (at < length) {
      this.#first ??= chunk[at];
      if (lf < at) lf = find(chunk, lineFeed, at);
      if (cr < at) cr = find(chunk, carriageReturn, at);
      const lineEnd = Math.min(lf, cr);
      if (lineEnd > at) this.#lineIsEmpty = false;
      if (lineEnd === length) break;
      this.#isAfterCr =
        lineEnd === cr && lineEnd + 1 === length && !(this.#lineIsEmpty && (this.#endsInCr || this.#isLong));
      if (this.#isAfterCr) break;
      at = lineEnd + 1;
      const isCr = lineEnd === cr && chunk[at] !== lineFeed;
      if (lineEnd === cr && !isCr) at += 1;
      const isEmpty = this.#first === lineFeed;
      if (!this.#endLine(isCr)) continue;
      // A hostile backend may send a million empty lines.
      if (isEmpty) while (chunk[at] === lineFeed) at += 1;
      this.#endEvent(partOf(chunk, start, at));
      start = at;
    }
    if (start < length) this.#hold(partOf(chunk, start, length));
  }

  /** @returns how many bytes of the chunk belong to the line whose CR came last */
  #endLineBefore(chunk: Uint8Array): number {
    this.#isAfterCr = false;
    const length = chunk[0] === lineFeed ? 1 : 0;
    if (this.#endLine(length === 0)) this.#endEvent(chunk.subarray(0, length));
    return length;
  }

  /** The open line ends. @returns whether its event does */
  #endLine(isCr: boolean): boolean {
    const endsEvent = this.#lineIsEmpty || this.#first === colon || this.ends === "line feed";
    this.#lineIsEmpty = true;
    this.#endsInCr = isCr;
    return endsEvent;
  }

  #endEvent(last: Uint8Array): void {
    const wasLong = this.#isLong;
    this.#isLong = false;
    this.#first = undefined;
    if (wasLong) this.handler.piece(last, true);
    else this.handler.event(this.#unfinished.take(last));
  }

  #hold(bytes: Uint8Array): void {
    const tooLong = this.#isLong ? bytes : this.#unfinished.add(bytes);
    if (tooLong === undefined) return;
    this.#isLong = true;
    this.handler.piece(tooLong, false);
  }
}

/** Whether bytes end an event in LF or CRLF, and with its last line. */
function endWithEvent(bytes: Uint8Array): boolean {
  const { length } = bytes;
  if (length < 2 || bytes[length - 1] !== lineFeed) return false;
  if (bytes[length - 2] === lineFeed) return true;
  return bytes[length - 2] === carriageReturn && bytes[length - 3] === lineFeed;
}

/** @returns the length if there is none */
function find(bytes: Uint8Array, byte: number, from: number): number {
  const at = bytes.indexOf(byte, from);
  return at < 0 ? bytes.length : at;
}

const nothing = new Uint8Array();

/** Bytes whose end has not come. */
export class Unfinished {
  /**
   * Memory of its own, of which `#length` bytes are used: a view would keep the whole chunk that it shows, and thousands of
   * views of a byte each would take a hundred times the memory of their bytes.
   */
  #held = nothing;
  #length = 0;

  /** @returns undefined if they are held; if they are too many, all bytes so far, and nothing is held */
  add(bytes: Uint8Array): Uint8Array | undefined {
    const needed = this.#length + bytes.length;
    if (needed > maxHeldEventBytes) return this.take(bytes);
    if (needed > this.#held.length) {
      const larger = new Uint8Array(Math.min(maxHeldEventBytes, Math.max(needed, 2 * this.#held.length)));
      larger.set(this.#held.subarray(0, this.#length));
      this.#held = larger;
    }
    this.#held.set(bytes, this.#length);
    this.#length = needed;
    return undefined;
  }

  /** @returns the bytes so far with `last` at their end, and begins anew */
  take(last: Uint8Array): Uint8Array {
    if (this.#length === 0) return last;
    const bytes = this.#held.subarray(0, this.#length);
    this.#held = nothing;
    this.#length = 0;
    return last.length === 0 ? bytes : Buffer.concat([bytes, last]);
  }
}

export function isLineEnd(byte: number | undefined): boolean {
  return byte === lineFeed || byte === carriageReturn;
}

const dataField = Buffer.from("data:");

/**
 * Finds the data of an event that comes in pieces, cut anywhere but inside a byte order mark, and ignores names, ids and
 * retry times. Decodes and keeps nothing.
 */
export class DataReader {
  /** How many bytes of `data:` the line begins with; -1 if it is another field or a comment. */
  #matched = 0;
  /** The colon was just read: a space that follows is not part of the value. */
  #mayBeSpace = false;
  #hasData = false;
  #hasBegun = false;

  /** @param onData gets views of what is pushed; several lines are joined by a LF */
  constructor(readonly onData: (piece: Uint8Array) => void) {}

  push(bytes: Uint8Array): void {
    let at = this.#hasBegun || !beginsWithMark(bytes) ? 0 : 3;
    this.#hasBegun = true;
    let [lf, cr] = [-1, -1];
    while (at < bytes.length) {
      if (lf < at) lf = find(bytes, lineFeed, at);
      if (cr < at) cr = find(bytes, carriageReturn, at);
      const lineEnd = Math.min(lf, cr);
      if (at < lineEnd) this.#readLine(bytes, at, lineEnd);
      if (lineEnd === bytes.length) return;
      // `data` without a colon is a line of empty data.
      if (this.#matched === dataField.length - 1) this.#beginData();
      this.#matched = 0;
      this.#mayBeSpace = false;
      at = lineEnd + 1;
    }
  }

  #beginData(): void {
    this.#mayBeSpace = true;
    if (this.#hasData) this.onData(lineFeedBytes);
    this.#hasData = true;
  }

  /** @param to after `from` */
  #readLine(bytes: Uint8Array, from: number, to: number): void {
    let at = from;
    while (at < to && this.#matched >= 0 && this.#matched < dataField.length) {
      this.#matched = bytes[at++] === dataField[this.#matched] ? this.#matched + 1 : -1;
      if (this.#matched === dataField.length) this.#beginData();
    }
    if (this.#matched < 0 || at === to) return;
    if (this.#mayBeSpace && bytes[at] === space) at++;
    this.#mayBeSpace = false;
    if (at < to) this.onData(partOf(bytes, at, to));
  }
}

const lineFeedBytes = Uint8Array.of(lineFeed);

/** The data of a whole event, or of one that no empty line ends; empty if it has none. */
export function dataOf(event: Uint8Array): Uint8Array {
  const line = findDataLine(event);
  if (line !== undefined) return event.subarray(line.start, line.end);
  const pieces: Uint8Array[] = [];
  new DataReader((piece) => pieces.push(piece)).push(event);
  return Buffer.concat(pieces);
}

const dataLine = /(?:(?<![^])\xef\xbb\xbf|^)data(?:: ?([^\r\n]*)|$)/gm;

/** Where the data of an event stands that has one line of it, as backends send JSON; undefined for any other. */
export function findDataLine(event: Uint8Array): Span | undefined {
  const text = latin1(event);
  dataLine.lastIndex = 0;
  const line = dataLine.exec(text);
  if (line === null || dataLine.test(text)) return undefined;
  const end = line.index + line[0].length;
  return { start: end - (line[1]?.length ?? 0), end };
}

export const beginsWithMark = (bytes: Uint8Array): boolean =>
  bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;

const fieldNames = ["data:", "event:", "id:", "retry:", ":"];

/** Whether bytes are the beginning of an event stream; undefined if they are too few to tell. */
export function beginsEvents(bytes: Uint8Array): boolean | undefined {
  const text = latin1(bytes.subarray(0, 16)).replace(/^(?:\xef\xbb\xbf)?[\r\n]*/, "");
  if (fieldNames.some((name) => text.startsWith(name))) return true;
  const mayBegin = fieldNames.some((name) => name.startsWith(text)) || "\xef\xbb\xbf".startsWith(text);
  return mayBegin && bytes.length < 16 ? undefined : false;
}
