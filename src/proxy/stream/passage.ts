import { noUsage, type Usage } from "../../domain/usage.ts";
import { skipLeading } from "../json/bytes.ts";
import {
  type BodyHeaders,
  isJson,
  isPlain,
  isPlainEventStream,
  mayBeEventStream,
  textKindOf,
} from "../usage/body-kind.ts";
import { createDecompressor, encodingsOf } from "../usage/decompress.ts";
import { noStreamUsage, readUsage, type UsageShape } from "../usage/event-usage.ts";
import { createJsonUsageParser, findShortJson, type JsonUsageParser } from "../usage/json-usage.ts";
import { beginsEvents, Events, Unfinished, type Position } from "./events.ts";
import type { EventFilter } from "./filter.ts";
import { carryOnlyContent, followText, type LongText } from "./flags.ts";
import { Hold, joined } from "./hold.ts";
import { createStreamUsage, type ResponseListener } from "./usage.ts";

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
export interface Passage {
  /** @returns the bytes that may be sent now */
  push(chunk: Uint8Array): Uint8Array;
  /** Set if usage is read more slowly than bytes come: the next chunk should wait for it, so that nothing piles up. */
  backlog(): Promise<void> | undefined;
  /** The event that ends the stream and what came with it, once: to be sent when its count is committed. */
  takeEnd(): Uint8Array | undefined;
  /** Where in an event stream the next byte goes. */
  position(): Position;
  /** The usage of the events pushed so far; none while a JSON document is unfinished. */
  seen(): Usage;
  /** The usage of everything pushed, also if the response was cut short. Called once. */
  end(): Usage | Promise<Usage>;
  /** @returns what still waits, to be sent after `end`; asked before, because the body broke off, without the event that did */
  rest(): Uint8Array;
  shape(): UsageShape;
}

interface PassageOptions {
  /** Undefined: the usage is not read. */
  listener: ResponseListener | undefined;
  filter?: EventFilter | undefined;
}

/** Usage is read from event streams and JSON, compressed or not, on any path; other responses have none. */
export function createPassage(headers: BodyHeaders, options: PassageOptions): Passage {
  const kind = textKindOf(headers);
  const holds = isPlainEventStream(headers) || (mayBeEventStream(headers) ? undefined : false);
  if (kind === undefined || (holds === false && options.listener === undefined)) return passAll;
  const text = createTextPassage({ ...options, holds, isLines: kind === "lines" });
  return isPlain(headers) ? text : createDecodingPassage(encodingsOf(headers.contentEncoding ?? ""), text);
}

const nothing = new Uint8Array();

const passAll: Passage = {
  push: (chunk) => chunk,
  backlog: () => undefined,
  takeEnd: () => undefined,
  position: () => "inside a line",
  seen: () => noUsage,
  end: () => noUsage,
  rest: () => nothing,
  shape: () => noStreamUsage,
};

/** The text is read on the side, decoded. */
function createDecodingPassage(encodings: readonly string[], text: Passage): Passage {
  const decompressor = createDecompressor(encodings, (chunk) => void text.push(chunk));
  if (decompressor === undefined) return passAll;
  let backlog: Promise<void> | undefined;
  return {
    ...text,
    push(chunk) {
      backlog = decompressor.push(chunk);
      return chunk;
    },
    backlog: () => backlog,
    async end() {
      await decompressor.end();
      return text.end();
    },
  };
}

const openBrace = 0x7b;

interface TextOptions extends PassageOptions {
  /** The text is an event stream that waits where it has to. Undefined: its first bytes tell. */
  holds: boolean | undefined;
  /** It is JSON lines. */
  isLines: boolean;
}

function createTextPassage({ listener, filter, holds: given, isLines }: TextOptions): Passage {
  const hold = new Hold();
  let holds = given;
  /** What came while that is unknown. */
  const start = new Unfinished();
  /** Undefined if no usage is read of events. */
  let usage = listener && createStreamUsage(listener, filter?.timedChoices);
  let isKnown = isLines || listener === undefined;
  /** Set if the body is one JSON text, which its first byte tells, whatever its type. */
  let json: JsonUsageParser | undefined;
  let long: LongText | undefined;
  /** What no empty line ends, once the body has ended. */
  let last: Uint8Array = nothing;

  const readEvent = (bytes: Uint8Array): void => (isLines ? usage?.text(bytes) : usage?.event(bytes));
  const holdEach = (events: readonly Uint8Array[]): void => {
    for (const event of events) hold.event(event);
  };

  const handler = {
    run(events: Uint8Array): boolean {
      if (isLines || listener?.progress?.isAsked === true) return false;
      if (!carryOnlyContent(events) || filter?.passes(events) === false) return false;
      return usage === undefined || usage.skim(events);
    },
    event(bytes: Uint8Array): void {
      readEvent(bytes);
      if (filter === undefined) hold.event(bytes);
      else holdEach(filter.event(bytes));
    },
    piece(bytes: Uint8Array, isLast: boolean): void {
      if (filter !== undefined) holdEach(filter.release());
      if (long === undefined) long = followText(bytes, !isLines);
      else long.push(bytes);
      if (!isLast) return hold.pass(bytes);
      usage?.longText(long);
      hold.lastPiece(bytes, long.endsStream());
      long = undefined;
    },
  };
  const events = new Events(handler, isLines ? "line feed" : "empty line");

  function findJson(chunk: Uint8Array): void {
    const first = chunk[skipLeading(chunk, 0)];
    isKnown = first !== undefined;
    if (first !== openBrace) return;
    json = createJsonUsageParser();
    usage = undefined;
  }

  function push(chunk: Uint8Array): Uint8Array {
    if (!isKnown) findJson(chunk);
    json?.push(chunk);
    if (json !== undefined && holds === false) return chunk;
    if (events.push(chunk)) return chunk;
    const ready = hold.take();
    if (holds === true) return ready;
    hold.takeEnd();
    return chunk;
  }

  return {
    push(chunk) {
      if (holds !== undefined) return push(chunk);
      const all = start.take(chunk);
      holds = beginsEvents(all);
      return holds === undefined ? (start.add(all) ?? nothing) : push(all);
    },
    backlog: () => undefined,
    takeEnd: () => hold.takeEnd(),
    position: () => (hold.waitsInLine ? "inside a line" : events.position()),
    seen: () => usage?.seen() ?? noUsage,
    end() {
      last = holds === undefined ? start.take(nothing) : events.rest();
      if (json !== undefined && listener !== undefined) return readDocument(json.document(), listener);
      if (last.length > 0) readEvent(last);
      else if (long !== undefined) usage?.longText(long);
      return usage?.seen() ?? noUsage;
    },
    rest() {
      if (holds === false) return nothing;
      return filter === undefined ? last : joined(filter.end(last));
    },
    shape: () => usage?.shape() ?? noStreamUsage,
  };
}

function readDocument(document: unknown, { onDocument, progress }: ResponseListener): Usage {
  onDocument?.(document, 0);
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
  const passage = createPassage(headers, { listener });
  passage.push(bytes);
  return passage.end();
}
