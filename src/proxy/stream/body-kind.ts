import { createDecodedStream, encodingsOf } from "./decompress.ts";

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

export const isPlain = ({ contentEncoding }: Pick<BodyHeaders, "contentEncoding">): boolean =>
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

/** What holds usage: JSON and event streams, and what small servers send if they set no type. */
const sniffedTypes = new Set(["text/event-stream", "application/json", "text/json", "text/plain", ""]);

/** Whether a body says that it is JSON, compressed or not. */
export function isJson({ contentType }: Pick<BodyHeaders, "contentType">): boolean {
  const type = mediaType(contentType);
  return type === "application/json" || type === "text/json" || type.endsWith("+json");
}

/** What of a body may hold usage; undefined: nothing. */
export function textKindOf({ contentType }: Pick<BodyHeaders, "contentType">): "text" | "lines" | undefined {
  const type = mediaType(contentType);
  if (type === "application/x-ndjson") return "lines";
  return sniffedTypes.has(type) || type.endsWith("+json") ? "text" : undefined;
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
