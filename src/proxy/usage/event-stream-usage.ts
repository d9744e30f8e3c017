import { noUsage, type Usage } from "../../domain.ts";
import { createEventStreamParser } from "../sse/parser.ts";
import { createJsonUsageParser, type JsonUsageParser, mayHoldUsage, mentionsUsage } from "./json-usage.ts";
import { readEventUsage, type StreamUsage } from "./token-counts.ts";

/** Reads the usage of an event stream that arrives in pieces, cut anywhere. */
export interface EventStreamUsageParser {
  push(chunk: Uint8Array): void;
  /** The usage of the events that are complete. */
  seen(): Usage;
  /** The usage of all events pushed. Called once. */
  end(): Usage;
}

const lineFeed = 0x0a;

export function createEventStreamUsageParser(): EventStreamUsageParser {
  let usage: StreamUsage = { ...noUsage, outputIsOpening: false };
  /** The current event's data as long as it is a single piece, as nearly all are. Most are never parsed. */
  let onlyPiece: Uint8Array | undefined;
  /** Has all of the current event's data; set once that is several pieces, or may hold usage. */
  let json: JsonUsageParser | undefined;
  const events = createEventStreamParser({
    data(piece) {
      if (json === undefined && onlyPiece === undefined) {
        onlyPiece = piece;
        return;
      }
      json ??= parserOf(onlyPiece);
      json.push(piece);
    },
    dispatch() {
      if (json === undefined && onlyPiece !== undefined && mayHoldUsage(onlyPiece)) json = parserOf(onlyPiece);
      if (json !== undefined) usage = readEventUsage(json.document(), usage);
      onlyPiece = undefined;
      json = undefined;
    },
  });
  const seen = (): Usage => ({ inputTokens: usage.inputTokens, outputTokens: usage.outputTokens });
  return {
    seen,
    push(chunk) {
      const holdsNone = events.isBetweenEvents() && endsEvent(chunk) && !mentionsUsage(chunk);
      if (!holdsNone) events.push(chunk);
    },
    end() {
      events.end();
      return seen();
    },
  };
}

function endsEvent(chunk: Uint8Array): boolean {
  return chunk.at(-1) === lineFeed && chunk.at(-2) === lineFeed;
}

function parserOf(piece: Uint8Array | undefined): JsonUsageParser {
  const parser = createJsonUsageParser();
  if (piece !== undefined) parser.push(piece);
  return parser;
}
