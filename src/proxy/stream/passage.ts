import { noUsage, type Usage } from "../../domain/usage.ts";
import { skipLeading } from "../json/bytes.ts";
import { type BodyHeaders, isJson, isPlain, isPlainEventStream, mayBeEventStream, textKindOf } from "./body-kind.ts";
import { createDecompressor, type Decompressor, encodingsOf } from "./body-kind.ts";
import { noStreamUsage, readUsage, type UsageShape } from "./event-usage.ts";
import { findShortJson, JsonUsageParser } from "./event-usage.ts";
import { beginsEvents, Events, isLineEnd, maxHeldEventBytes, type Position, Unfinished } from "./events.ts";
import type { EventFilter } from "./filter.ts";
import { carryOnlyContent, endsStream, LongText } from "./flags.ts";
import { type ResponseListener, UsageReader } from "./usage.ts";

interface PassageOptions {
  listener: ResponseListener | undefined;
  filter?: EventFilter | undefined;
}

const openBrace = 0x7b;
const nothing = new Uint8Array();

/**
 * What the bytes of a response pass on their way to the client, whatever they are; their usage is read on the way. It never
 * throws or rejects.
 *
 * An event stream is cut into its events. Each goes through the reader of usage, the filter and the hold; what the hold
 * lets go may be sent. Other bodies, and compressed ones, may be sent as they come.
 * - Bytes leave in their order: by `push`, then by `takeEnd`, then by `rest`.
 * - Of an event stream, an unfinished event waits, so that an error never follows half an event, and the event that ends
 *   the stream, so that no client sees an end that is not counted. At most `maxHeldEventBytes` of an event wait.
 * - Nothing here survives the process: what waits has not been sent, so the client sees a response without its end.
 */
export class Passage {
  readonly #listener: ResponseListener | undefined;
  readonly #filter: EventFilter | undefined;
  /** It is JSON lines. */
  readonly #isLines: boolean;
  readonly #way: "all as it comes" | "decoded on the side" | "plain";
  /** Undefined where nothing is to be decoded, or cannot be. */
  readonly #decompressor: Decompressor | undefined;
  /** Set if usage is read more slowly than bytes come: the next chunk should wait for it, so that nothing piles up. */
  backlog: Promise<void> | undefined;
  readonly #events: Events;
  readonly #hold = new Hold();
  /** The text is an event stream that waits where it has to. Undefined: its first bytes tell. */
  #holds: boolean | undefined;
  /** What came while that is unknown. */
  readonly #start = new Unfinished();
  /** Undefined if no usage is read of events. */
  #usage: UsageReader | undefined;
  #isKnown: boolean;
  /** Set if the body is one JSON text, which its first byte tells, whatever its type. */
  #json: JsonUsageParser | undefined;
  #long: LongText | undefined;
  /** What no empty line ends, once the body has ended. */
  #last: Uint8Array = nothing;

  /**
   * Usage is read from event streams and JSON, compressed or not, on any path; other responses have none.
   * @param listener undefined: the usage is not read
   */
  constructor(headers: BodyHeaders, { listener, filter }: PassageOptions) {
    const kind = textKindOf(headers);
    this.#listener = listener;
    this.#filter = filter;
    this.#isLines = kind === "lines";
    this.#events = new Events(this, this.#isLines ? "line feed" : "empty line");
    this.#holds = isPlainEventStream(headers) || (mayBeEventStream(headers) ? undefined : false);
    this.#usage = listener && new UsageReader(listener, filter?.timedChoices);
    this.#isKnown = this.#isLines || listener === undefined;
    const isRead = kind !== undefined && (this.#holds !== false || listener !== undefined);
    this.#way = !isRead ? "all as it comes" : isPlain(headers) ? "plain" : "decoded on the side";
    if (this.#way !== "decoded on the side") return;
    const encodings = encodingsOf(headers.contentEncoding ?? "");
    this.#decompressor = createDecompressor(encodings, (chunk) => void this.#read(chunk));
  }

  /** @returns the bytes that may be sent now */
  push(chunk: Uint8Array): Uint8Array {
    if (this.#way === "plain") return this.#read(chunk);
    this.backlog = this.#decompressor?.push(chunk);
    return chunk;
  }

  #read(chunk: Uint8Array): Uint8Array {
    if (this.#holds !== undefined) return this.#pass(chunk);
    const all = this.#start.take(chunk);
    this.#holds = beginsEvents(all);
    return this.#holds === undefined ? (this.#start.add(all) ?? nothing) : this.#pass(all);
  }

  #pass(chunk: Uint8Array): Uint8Array {
    if (!this.#isKnown) this.#findJson(chunk);
    this.#json?.push(chunk);
    if (this.#json !== undefined && this.#holds === false) return chunk;
    if (this.#events.push(chunk)) return chunk;
    const ready = this.#hold.take();
    if (this.#holds === true) return ready;
    this.#hold.takeEnd();
    return chunk;
  }

  #findJson(chunk: Uint8Array): void {
    const first = chunk[skipLeading(chunk, 0)];
    this.#isKnown = first !== undefined;
    if (first !== openBrace) return;
    this.#json = new JsonUsageParser();
    this.#usage = undefined;
  }

  /** This and the next two are for the cutter alone. */
  run(events: Uint8Array): boolean {
    if (this.#isLines || this.#listener?.progress?.isAsked === true) return false;
    if (!carryOnlyContent(events) || this.#filter?.passes(events) === false) return false;
    return this.#usage === undefined || this.#usage.skim(events);
  }

  event(bytes: Uint8Array): void {
    this.#usage?.read(bytes, this.#isLines);
    if (this.#filter === undefined) this.#hold.event(bytes);
    else this.#holdEach(this.#filter.event(bytes));
  }

  piece(bytes: Uint8Array, isLast: boolean): void {
    if (this.#filter !== undefined) this.#holdEach(this.#filter.release());
    if (this.#long === undefined) this.#long = new LongText(bytes, !this.#isLines);
    else this.#long.push(bytes);
    if (!isLast) return this.#hold.pass(bytes);
    this.#usage?.longText(this.#long);
    this.#hold.lastPiece(bytes, this.#long.endsStream());
    this.#long = undefined;
  }

  #holdEach(events: readonly Uint8Array[]): void {
    for (const event of events) this.#hold.event(event);
  }

  /** The event that ends the stream and what came with it, once: to be sent when its count is committed. */
  takeEnd(): Uint8Array | undefined {
    return this.#hold.takeEnd();
  }

  /** Where in an event stream the next byte goes. */
  position(): Position {
    return this.#hold.waitsInLine ? "inside a line" : this.#events.position();
  }

  /** The usage of the events pushed so far; none while a JSON document is unfinished. */
  seen(): Usage {
    return this.#usage?.seen() ?? noUsage;
  }

  /** The usage of everything pushed, also if the response was cut short. Called once. */
  end(): Usage | Promise<Usage> {
    return this.#decompressor === undefined ? this.#end() : this.#decompressor.end().then(() => this.#end());
  }

  #end(): Usage {
    this.#last = this.#holds === undefined ? this.#start.take(nothing) : this.#events.rest();
    if (this.#json !== undefined && this.#listener !== undefined) {
      return readDocument(this.#json.document(), this.#listener);
    }
    if (this.#last.length > 0) this.#usage?.read(this.#last, this.#isLines);
    else if (this.#long !== undefined) this.#usage?.longText(this.#long);
    return this.seen();
  }

  /** @returns what still waits, to be sent after `end`; asked before, because the body broke off, without the event that did */
  rest(): Uint8Array {
    if (this.#holds === false) return nothing;
    return this.#filter === undefined ? this.#last : joined(this.#filter.end(this.#last));
  }

  shape(): UsageShape {
    return this.#usage?.usage ?? noStreamUsage;
  }
}

function readDocument(document: unknown, { observer, progress }: ResponseListener): Usage {
  observer?.onDocument(document, 0);
  progress?.document(document);
  return readUsage(document, noUsage);
}

/** The usage of a whole response. */
export async function readWholeUsage(
  bytes: Uint8Array,
  headers: BodyHeaders,
  listener: ResponseListener = {},
): Promise<Usage> {
  const isShortJson = isJson(headers) && isPlain(headers);
  const document = isShortJson ? findShortJson(bytes) : undefined;
  if (document !== undefined) return readDocument(document, listener);
  const passage = new Passage(headers, { listener });
  passage.push(bytes);
  return passage.end();
}

/** What of an event stream may go to its client, and the event that ends it, which waits until its count is committed. */
class Hold {
  readonly #ready: Uint8Array[] = [];
  #end: Uint8Array[] | undefined;
  #hasEnded = false;
  /** The stream ends with a long event, so that nothing of ours fits in. */
  waitsInLine = false;

  /** Part of a long event, not the last. */
  pass(bytes: Uint8Array): void {
    (this.#end ?? this.#ready).push(bytes);
  }

  event(event: Uint8Array): void {
    const isEnd = !this.#hasEnded && endsStream(event);
    if (isEnd && event.length > maxHeldEventBytes) return this.#endLong(event);
    if (isEnd) this.#beginEnd();
    this.pass(event);
  }

  /** The last bytes of a long event. If that ends the stream, its last line ends wait. */
  lastPiece(bytes: Uint8Array, isEnd: boolean): void {
    if (isEnd && !this.#hasEnded) this.#endLong(bytes);
    else this.pass(bytes);
  }

  /** @returns what may be sent now */
  take(): Uint8Array {
    return this.#ready.length === 1 ? (this.#ready.pop() ?? nothing) : joined(this.#ready.splice(0));
  }

  /** @returns the event that ends the stream and what came with it, once. Nothing waits afterwards */
  takeEnd(): Uint8Array | undefined {
    const bytes = this.#end && joined(this.#end);
    this.#end = undefined;
    return bytes;
  }

  #beginEnd(): void {
    this.#hasEnded = true;
    this.#end = [];
  }

  #endLong(bytes: Uint8Array): void {
    let at = bytes.length;
    while (at > 0 && isLineEnd(bytes[at - 1])) at--;
    this.pass(bytes.subarray(0, at));
    this.#beginEnd();
    this.pass(bytes.subarray(at));
    this.waitsInLine = true;
  }
}

/** Without a copy if they stand side by side, as those that came in one chunk do. */
function joined(pieces: readonly Uint8Array[]): Uint8Array {
  const [first = nothing] = pieces;
  if (pieces.length < 2) return first;
  let end = first.byteOffset;
  const isOne = pieces.every(({ buffer, byteOffset, length }) => {
    const follows = buffer === first.buffer && byteOffset === end;
    end += length;
    return follows;
  });
  return isOne ? new Uint8Array(first.buffer, first.byteOffset, end - first.byteOffset) : Buffer.concat(pieces);
}
