import { createUnfinishedEvent, endInLineFeeds } from "../sse/events.ts";
import { createEventStreamParser } from "../sse/parser.ts";
import {
  createJsonUsageParser,
  findShortJson,
  maxParsedLength,
  type JsonUsageParser,
  mayHoldUsage,
  mentionsUsage,
} from "./json-usage.ts";
import { noStreamUsage, readEventUsage, type UsageShape, usageOfStream } from "./event-usage.ts";
import type { Usage } from "../../domain/usage.ts";

/** Reads the usage of an event stream that arrives in pieces, cut anywhere. */
interface EventStreamUsageParser {
  push(chunk: Uint8Array): undefined;
  /** Takes whole events that mention no usage, after whole events, without reading them. False: they are to be pushed. */
  skim(events: Uint8Array): boolean;
  /** The usage of the events that are complete. */
  seen(): Usage;
  /** The usage of all events pushed. Called once. */
  end(): Usage;
  shape(): UsageShape;
}

const lineFeed = 0x0a;

/** What else is read of a response. */
export interface ResponseListener {
  /**
   * Called with each text in its order. Every text is parsed.
   * @param unreadBytes of one that is too long to be parsed, of which only the usage is known; else 0
   * @param json its text, if it is an event's
   */
  onDocument?: ((document: unknown, unreadBytes: number, json?: Uint8Array) => void) | undefined;
  /** Takes whole events that mention no usage without parsing their texts. False: they are to be parsed. */
  skim?: ((events: Uint8Array) => boolean) | undefined;
}

export function createEventStreamUsageParser(listener: ResponseListener = {}): EventStreamUsageParser {
  const documents = createDocumentsUsage(listener);
  const events = createEventStreamParser(documents);
  return {
    seen: documents.seen,
    shape: documents.shape,
    skim: documents.skim,
    push(chunk) {
      const mayBeLeftOut = endInLineFeeds(chunk) && events.isBetweenEvents() && !mentionsUsage(chunk);
      if (mayBeLeftOut && documents.skim(chunk)) return undefined;
      events.push(chunk);
      documents.letGo();
      return undefined;
    },
    end() {
      events.end();
      return documents.seen();
    },
  };
}

/** The same for JSON texts of a line each. */
export function createLinesUsageParser(listener: ResponseListener = {}): EventStreamUsageParser {
  const documents = createDocumentsUsage(listener);
  return {
    seen: documents.seen,
    shape: documents.shape,
    skim: () => false,
    push(chunk) {
      let start = 0;
      for (let end = chunk.indexOf(lineFeed); end >= 0; end = chunk.indexOf(lineFeed, start)) {
        documents.data(chunk.subarray(start, end));
        documents.dispatch();
        start = end + 1;
      }
      if (start < chunk.length) documents.data(chunk.subarray(start));
      documents.letGo();
      return undefined;
    },
    end() {
      documents.dispatch();
      return documents.seen();
    },
  };
}

const nothing = new Uint8Array();

/** Reads the usage of JSON texts that follow one another, each in one or several pieces. */
function createDocumentsUsage({ onDocument, skim }: ResponseListener) {
  let usage = noStreamUsage;
  /** What earlier chunks brought of the current text, while that is short enough to be parsed at once. */
  const held = createUnfinishedEvent();
  /** The latest piece of the text: a view of what was pushed. Nearly every text is this alone, and most are never parsed. */
  let piece: Uint8Array = nothing;
  /** Reads a text that is too long to be held; has all of it. */
  let json: JsonUsageParser | undefined;
  /** What was pushed of that text. */
  let longBytes = 0;

  /** The rest of the text comes later, and nothing may keep the chunk until then. */
  function letGo(): void {
    if (piece.length === 0) return;
    const tooLong = held.add(piece);
    piece = nothing;
    if (tooLong !== undefined) startLong(tooLong);
  }

  function pushLong(next: Uint8Array): void {
    json?.push(next);
    longBytes += next.length;
  }

  function startLong(text: Uint8Array): void {
    json = parserOf(text);
    longBytes = text.length;
  }

  /** @returns undefined for a text that holds nothing of interest, such as `[DONE]` */
  function parse(text: Uint8Array): unknown {
    const isLong = text.length > maxParsedLength;
    if (onDocument === undefined && !mayHoldUsage(text)) return undefined;
    const document = findShortJson(text);
    // One that was cut may still hold its usage.
    if (document === undefined && (isLong || mayHoldUsage(text))) startLong(text);
    return document ?? json?.document();
  }

  return {
    data(next: Uint8Array): void {
      letGo();
      if (json === undefined) piece = next;
      else pushLong(next);
    },
    letGo,
    dispatch(): void {
      const text = json === undefined ? held.take(piece) : undefined;
      const document = text === undefined ? json?.document() : parse(text);
      const unreadBytes = longBytes > maxParsedLength ? longBytes : 0;
      const isWhole = json === undefined;
      piece = nothing;
      json = undefined;
      longBytes = 0;
      if (document === undefined) return;
      onDocument?.(document, unreadBytes, text);
      usage = readEventUsage(document, usage, isWhole);
    },
    seen: (): Usage => usageOfStream(usage),
    shape: (): UsageShape => usage,
    skim: (events: Uint8Array) => onDocument === undefined || skim?.(events) === true,
  };
}

function parserOf(text: Uint8Array): JsonUsageParser {
  const parser = createJsonUsageParser();
  parser.push(text);
  return parser;
}
