import type { Usage } from "../../domain/usage.ts";
import { createEventStreamParser } from "../sse/parser.ts";
import {
  createJsonUsageParser,
  findShortJson,
  type JsonUsageParser,
  mayHoldUsage,
  mentionsUsage,
} from "./json-usage.ts";
import { findResponseId } from "./response-id.ts";
import { noStreamUsage, readEventUsage, usageOfStream } from "./token-counts.ts";

/** Reads the usage of an event stream that arrives in pieces, cut anywhere. */
export interface EventStreamUsageParser {
  push(chunk: Uint8Array): void;
  /** The usage of the events that are complete. */
  seen(): Usage;
  /** The usage of all events pushed. Called once. */
  end(): Usage;
}

const lineFeed = 0x0a;

/** Called with the id of the response that a text with usage names. */
type OnResponseId = (id: string | undefined) => void;

export function createEventStreamUsageParser(onResponseId: OnResponseId): EventStreamUsageParser {
  const documents = createDocumentsUsage(onResponseId);
  const events = createEventStreamParser(documents);
  return {
    seen: documents.seen,
    push(chunk) {
      const holdsNone = events.isBetweenEvents() && endsEvent(chunk) && !mentionsUsage(chunk);
      if (!holdsNone) events.push(chunk);
    },
    end() {
      events.end();
      return documents.seen();
    },
  };
}

/** The same for JSON texts of a line each. */
export function createLinesUsageParser(onResponseId: OnResponseId): EventStreamUsageParser {
  const documents = createDocumentsUsage(onResponseId);
  return {
    seen: documents.seen,
    push(chunk) {
      let start = 0;
      for (let end = chunk.indexOf(lineFeed); end >= 0; end = chunk.indexOf(lineFeed, start)) {
        documents.data(chunk.subarray(start, end));
        documents.dispatch();
        start = end + 1;
      }
      documents.data(chunk.subarray(start));
    },
    end() {
      documents.dispatch();
      return documents.seen();
    },
  };
}

/** Reads the usage of JSON texts that follow one another, each in one or several pieces. */
function createDocumentsUsage(onResponseId: OnResponseId) {
  let usage = noStreamUsage;
  /** The current text as long as it is a single piece, as nearly all are. Most are never parsed. */
  let onlyPiece: Uint8Array | undefined;
  /** Has all of the current text; set once that is several pieces. */
  let json: JsonUsageParser | undefined;
  return {
    data(piece: Uint8Array): void {
      if (json === undefined && onlyPiece === undefined) {
        onlyPiece = piece;
        return;
      }
      json ??= parserOf(onlyPiece);
      json.push(piece);
    },
    dispatch(): void {
      if (json !== undefined || (onlyPiece !== undefined && mayHoldUsage(onlyPiece))) {
        const document = documentOf(onlyPiece, json);
        usage = readEventUsage(document, usage);
        onResponseId(findResponseId(document));
      }
      onlyPiece = undefined;
      json = undefined;
    },
    seen: (): Usage => usageOfStream(usage),
  };
}

function endsEvent(chunk: Uint8Array): boolean {
  return chunk.at(-1) === lineFeed && chunk.at(-2) === lineFeed;
}

/** @param parser has all of the text; undefined if that is one piece */
function documentOf(onlyPiece: Uint8Array | undefined, parser: JsonUsageParser | undefined): unknown {
  const parsed = parser === undefined && onlyPiece !== undefined ? findShortJson(onlyPiece) : undefined;
  return parsed ?? (parser ?? parserOf(onlyPiece)).document();
}

function parserOf(piece: Uint8Array | undefined): JsonUsageParser {
  const parser = createJsonUsageParser();
  if (piece !== undefined) parser.push(piece);
  return parser;
}
