import { skipLeading } from "../json/bytes.ts";
import { createDecodedStream, createDecompressor, encodingsOf } from "./decompress.ts";
import { createEventStreamUsageParser, createLinesUsageParser, type ResponseListener } from "./stream-usage.ts";
import { createJsonUsageParser, findShortJson } from "./json-usage.ts";
import { noStreamUsage, readUsage, type UsageShape } from "./event-usage.ts";
import { noUsage, type Usage } from "../../domain/usage.ts";

export type { ResponseListener } from "./stream-usage.ts";

/** Reads the usage of a response from its bytes as they pass. Never throws or rejects. */
export interface UsageReader {
  /** @returns a promise if the reader cannot keep up: the next chunk should wait for it, so that nothing piles up */
  push(chunk: Uint8Array): Promise<void> | undefined;
  /**
   * Takes whole events of a stream that mention no usage, after whole events, without reading them. False: they are to be
   * pushed.
   */
  skim(events: Uint8Array): boolean;
  /** The usage of the events pushed so far; none while a JSON document is unfinished. */
  seen(): Usage;
  /** The usage of everything pushed, also if the response was cut short. Called once. */
  end(): Usage | Promise<Usage>;
  /** Undefined for what is not an event stream. */
  shape?: (() => UsageShape) | undefined;
}

/** The response headers that determine how its bytes are read; null if absent. */
export interface BodyHeaders {
  contentType: string | null;
  contentEncoding: string | null;
}

/** Whether the bytes are an event stream as they pass, so that comments, errors or a filter can be inserted. */
export function isPlainEventStream(headers: BodyHeaders): boolean {
  return isEventStream(headers) && isPlain(headers);
}

/** Whether the bytes may be an event stream as they pass, although the type does not say so. */
export function mayBeEventStream({ contentType, contentEncoding }: BodyHeaders): boolean {
  return sniffedTypes.has(mediaType(contentType)) && isPlain({ contentEncoding });
}

const isPlain = ({ contentEncoding }: Pick<BodyHeaders, "contentEncoding">): boolean =>
  contentEncoding === null || encodingsOf(contentEncoding).length === 0;

/** Whether clients get an event stream, compressed or not. */
export const isEventStream = ({ contentType }: Pick<BodyHeaders, "contentType">): boolean =>
  mediaType(contentType) === "text/event-stream";

/** @returns undefined if it cannot be decompressed */
export function decompressBody(
  body: ReadableStream<Uint8Array>,
  { contentEncoding }: BodyHeaders,
): ReadableStream<Uint8Array> | undefined {
  return isPlain({ contentEncoding }) ? body : createDecodedStream(body, encodingsOf(contentEncoding ?? ""));
}

/** Usage is read from event streams and JSON, compressed or not, on any path; other responses have none. */
export function createUsageReader(headers: BodyHeaders, listener: ResponseListener = {}): UsageReader {
  const type = mediaType(headers.contentType);
  const isLines = type === "application/x-ndjson";
  if (!isLines && !sniffedTypes.has(type) && !type.endsWith("+json")) return noUsageReader;
  const reader = isLines ? createLinesUsageParser(listener) : createSniffingReader(listener);
  if (isPlain(headers)) return reader;
  return findDecompressingReader(encodingsOf(headers.contentEncoding ?? ""), reader) ?? noUsageReader;
}

function findDecompressingReader(encodings: readonly string[], reader: UsageReader): UsageReader | undefined {
  const decompressor = createDecompressor(encodings, (chunk) => void reader.push(chunk));
  if (decompressor === undefined) return undefined;
  const end = async (): Promise<Usage> => {
    await decompressor.end();
    return reader.end();
  };
  return { push: decompressor.push, skim: () => false, seen: reader.seen, end, shape: reader.shape };
}

/** The usage of a whole response. */
export async function readWholeUsage(
  bytes: Uint8Array,
  headers: BodyHeaders,
  listener: ResponseListener = {},
): Promise<Usage> {
  const document = isPlainJson(headers) ? findShortJson(bytes) : undefined;
  if (document !== undefined) {
    listener.onDocument?.(document, 0);
    return readUsage(document, noUsage);
  }
  const reader = createUsageReader(headers, listener);
  void reader.push(bytes);
  return reader.end();
}

function isPlainJson(headers: BodyHeaders): boolean {
  return mediaType(headers.contentType) === "application/json" && isPlain(headers);
}

/** Reads responses without usage, or whose tokens do not count. */
export const noUsageReader: UsageReader = {
  push: () => undefined,
  skim: () => true,
  seen: () => noUsage,
  end: () => noUsage,
};

/** What holds usage: JSON and event streams, and what small servers send if they set no type. */
const sniffedTypes = new Set(["text/event-stream", "application/json", "text/json", "text/plain", ""]);

/** Whether a body says that it is JSON, compressed or not. */
export function isJson({ contentType }: Pick<BodyHeaders, "contentType">): boolean {
  const type = mediaType(contentType);
  return type === "application/json" || type === "text/json" || type.endsWith("+json");
}

/** Distinguishes a JSON object from an event stream by its first byte, whatever the type. */
function createSniffingReader(listener: ResponseListener): UsageReader {
  let reader: UsageReader | undefined;
  // It gets what precedes the first byte too: a line that begins with a blank is not a field.
  const events = createEventStreamUsageParser(listener);
  return {
    push(chunk) {
      if (reader !== undefined) return reader.push(chunk);
      const start = skipLeading(chunk, 0);
      if (start === chunk.length) return events.push(chunk);
      reader = chunk[start] === openBrace ? createJsonReader(listener) : events;
      return reader.push(reader === events ? chunk : chunk.subarray(start));
    },
    skim: (whole) => reader?.skim(whole) === true,
    seen: () => reader?.seen() ?? noUsage,
    end: () => reader?.end() ?? noUsage,
    shape: () => reader?.shape?.() ?? noStreamUsage,
  };
}

const openBrace = 0x7b;

function createJsonReader(listener: ResponseListener): UsageReader {
  const parser = createJsonUsageParser();
  return {
    push(chunk) {
      parser.push(chunk);
      return undefined;
    },
    skim: () => false,
    seen: () => noUsage,
    end() {
      listener.onDocument?.(parser.document(), 0);
      return readUsage(parser.document(), noUsage);
    },
  };
}

/** Of the response before, which is asked for several times, and which the next one nearly always has too. */
let latest = { contentType: "", mediaType: "" };

function mediaType(contentType: string | null): string {
  if (contentType === null) return "";
  if (contentType !== latest.contentType) {
    latest = { contentType, mediaType: (contentType.split(";", 1)[0] ?? "").trim().toLowerCase() };
  }
  return latest.mediaType;
}
