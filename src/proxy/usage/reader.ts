import type { Transform } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw, createZstdDecompress } from "node:zlib";
import { createEventStreamParser } from "../sse/parser.ts";
import { skipLeading } from "../json/bytes.ts";
import { createUsageScanner, mayHoldUsage, mentionsUsage, type UsageScanner } from "./json-scanner.ts";
import { noUsage, type Usage } from "../../domain.ts";
import { findResponseId } from "./response-id.ts";
import { readEventUsage, readUsage, type StreamUsage } from "./usage.ts";

/** Called with the id under which the backend stores the response, as soon as it is known; may be called again. */
export type OnResponseId = (id: string | undefined) => void;

const ignoreId: OnResponseId = () => undefined;

/** Looks at an answer's bytes as they pass and says at the end what they told of usage. Never throws or rejects. */
export interface UsageReader {
  /** @returns a promise where the reader cannot keep up: the next chunk should wait for it, so that nothing piles up */
  push(chunk: Uint8Array): Promise<void> | undefined;
  /** The usage of the events pushed so far; none while a JSON document is unfinished. */
  seen(): Usage;
  /** The usage of everything pushed, also where the answer was cut short. Called once. */
  end(): Usage | Promise<Usage>;
}

/** An answer's headers that say how its bytes are to be read; null where it has none. */
export interface BodyHeaders {
  contentType: string | null;
  contentEncoding: string | null;
}

/** Whether the bytes are an event stream as they pass, so that a comment, an error or a filter can go in between. */
export function isPlainEventStream({ contentType, contentEncoding }: BodyHeaders): boolean {
  return mediaType(contentType) === "text/event-stream" && encodingName(contentEncoding) === "identity";
}

/** Usage is read from event streams and JSON, compressed or not, on any path; of other answers none is known. */
export function createUsageReader(headers: BodyHeaders, onResponseId = ignoreId): UsageReader {
  const reader = createPlainReader(mediaType(headers.contentType), onResponseId);
  const encoding = encodingName(headers.contentEncoding);
  if (reader === undefined || encoding === "identity") return reader ?? blindReader;
  const decoder = decoders[encoding];
  return decoder === undefined ? blindReader : createDecodingReader(decoder, reader);
}

/**
 * The usage of a whole answer. A short JSON text is parsed by the runtime, which takes a tenth of the time; the scanner
 * is for what is long, comes in pieces or is compressed.
 */
export async function readWholeUsage(bytes: Uint8Array, headers: BodyHeaders, onResponseId = ignoreId): Promise<Usage> {
  const isShortJson = bytes.length <= maxParsedLength && isPlainJson(headers);
  const document = isShortJson ? findJson(bytes) : undefined;
  if (document !== undefined) {
    onResponseId(findResponseId(document));
    return readUsage(document, noUsage);
  }
  const reader = createUsageReader(headers, onResponseId);
  void reader.push(bytes);
  return reader.end();
}

const maxParsedLength = 64 * 1024;

function isPlainJson({ contentType, contentEncoding }: BodyHeaders): boolean {
  return mediaType(contentType) === "application/json" && encodingName(contentEncoding) === "identity";
}

/** Undefined where it is no JSON: half of one may tell its usage all the same. */
function findJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString());
  } catch {
    return undefined;
  }
}

/** For responses whose tokens do not count. */
export const blindReader: UsageReader = { push: () => undefined, seen: () => noUsage, end: () => noUsage };

function createPlainReader(type: string, onResponseId: OnResponseId): UsageReader | undefined {
  if (type === "text/event-stream") return createEventStreamReader(onResponseId);
  if (type === "application/json" || type.endsWith("+json")) return createSniffingReader(onResponseId);
  // What small servers answer that do not set a type.
  if (type === "" || type === "text/plain") return createSniffingReader(onResponseId);
  return undefined;
}

/** A JSON object shows itself by its first byte, whatever the type says. */
function createSniffingReader(onResponseId: OnResponseId): UsageReader {
  let reader: UsageReader | undefined;
  return {
    push(chunk) {
      if (reader !== undefined) return reader.push(chunk);
      const first = chunk[skipLeading(chunk, 0)];
      if (first === undefined) return undefined;
      reader = first === openBrace ? createJsonReader(onResponseId) : createEventStreamReader(onResponseId);
      return reader.push(chunk);
    },
    seen: () => reader?.seen() ?? noUsage,
    end: () => reader?.end() ?? noUsage,
  };
}

const lineFeed = 0x0a;
const openBrace = 0x7b;

function createJsonReader(onResponseId: OnResponseId): UsageReader {
  const scanner = createUsageScanner();
  return {
    push(chunk) {
      scanner.push(chunk);
      return undefined;
    },
    seen: () => noUsage,
    end() {
      onResponseId(findResponseId(scanner.document()));
      return readUsage(scanner.document(), noUsage);
    },
  };
}

function createEventStreamReader(onResponseId: OnResponseId): UsageReader {
  let usage: StreamUsage = { ...noUsage, outputIsOpening: false };
  /** The event's data as long as it is a single piece, which it nearly always is. */
  let onlyPiece: Uint8Array | undefined;
  let scanner: UsageScanner | undefined;
  const parser = createEventStreamParser({
    data(piece) {
      if (scanner === undefined && onlyPiece === undefined) {
        onlyPiece = piece;
        return;
      }
      scanner ??= scannerOf(onlyPiece);
      scanner.push(piece);
    },
    dispatch() {
      if (scanner === undefined && onlyPiece !== undefined && mayHoldUsage(onlyPiece)) scanner = scannerOf(onlyPiece);
      if (scanner !== undefined) {
        usage = readEventUsage(scanner.document(), usage);
        onResponseId(findResponseId(scanner.document()));
      }
      onlyPiece = undefined;
      scanner = undefined;
    },
  });
  const seen = (): Usage => ({ inputTokens: usage.inputTokens, outputTokens: usage.outputTokens });
  return {
    seen,
    push(chunk) {
      const holdsNone = parser.isBetweenEvents() && endsEvent(chunk) && !mentionsUsage(chunk);
      if (!holdsNone) parser.push(chunk);
      return undefined;
    },
    end() {
      parser.end();
      return seen();
    },
  };
}

function endsEvent(chunk: Uint8Array): boolean {
  return chunk.at(-1) === lineFeed && chunk.at(-2) === lineFeed;
}

function scannerOf(piece: Uint8Array | undefined): UsageScanner {
  const scanner = createUsageScanner();
  if (piece !== undefined) scanner.push(piece);
  return scanner;
}

const decoders: Readonly<Record<string, (firstByte: number) => Transform>> = {
  gzip: () => createGunzip(),
  "x-gzip": () => createGunzip(),
  // RFC 9110 section 8.4.1.2: meant is zlib's format, and some send the bare one. Zlib's first byte ends in 8.
  deflate: (firstByte) => ((firstByte & 0x0f) === 8 ? createInflate() : createInflateRaw()),
  br: () => createBrotliDecompress(),
  zstd: () => createZstdDecompress(),
};

/** A small answer can unpack to terabytes; nobody's answer is larger than this, in bytes. */
const maxDecodedLength = 2 ** 31;

/**
 * Decompresses on the side. Nothing decompressed is kept, and what is broken, endless or cut short is read as far as it
 * goes.
 */
function createDecodingReader(createDecoder: (firstByte: number) => Transform, reader: UsageReader): UsageReader {
  let decoder: Transform | undefined;
  let closed = Promise.resolve();
  let resume = (): void => undefined;

  function start(firstByte: number): Transform {
    const started = createDecoder(firstByte);
    let decodedLength = 0;
    started.on("data", (chunk: Uint8Array) => {
      decodedLength += chunk.length;
      if (decodedLength > maxDecodedLength) started.destroy();
      else void reader.push(chunk);
    });
    started.on("error", () => undefined);
    started.on("drain", () => resume());
    closed = new Promise((resolve) => {
      started.once("close", resolve);
    });
    void closed.then(() => resume());
    return started;
  }

  return {
    push(chunk) {
      const firstByte = chunk[0];
      if (firstByte === undefined) return undefined;
      decoder ??= start(firstByte);
      if (decoder.destroyed || decoder.write(chunk)) return undefined;
      return new Promise((resolve) => {
        resume = resolve;
      });
    },
    seen: reader.seen,
    async end() {
      decoder?.end();
      await closed;
      return reader.end();
    },
  };
}

function mediaType(contentType: string | null): string {
  return (contentType?.split(";", 1)[0] ?? "").trim().toLowerCase();
}

function encodingName(contentEncoding: string | null): string {
  const name = (contentEncoding ?? "").trim().toLowerCase();
  return name === "" ? "identity" : name;
}
