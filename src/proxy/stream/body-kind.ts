import { pipeline, Readable, type Transform } from "node:stream";
import type { ReadableStream as NodeReadableStream } from "node:stream/web";
import {
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  createZstdDecompress,
  type ZlibOptions,
  type ZstdOptions,
} from "node:zlib";

interface MediaType {
  contentType: string | null;
  /** Clients get an event stream, compressed or not. */
  isEventStream: boolean;
  /** It says that it is JSON, compressed or not. */
  isJson: boolean;
  /** It may be an event stream although it does not say so. */
  isSniffed: boolean;
  /** What of it may hold usage; undefined: nothing. */
  text: "text" | "lines" | undefined;
}

/** How the bytes of a response are read. */
export interface BodyKind extends MediaType {
  encodings: readonly string[];
  isPlain: boolean;
  /** It is an event stream as it passes, so that comments, errors or a filter can be inserted. */
  isPlainEvents: boolean;
}

/** By its headers; null if absent. */
export function kindOf(contentType: string | null, contentEncoding: string | null): BodyKind {
  const type = mediaTypeOf(contentType);
  const encodings = encodingsOf(contentEncoding ?? "");
  const isPlain = encodings.length === 0;
  return { ...type, encodings, isPlain, isPlainEvents: type.isEventStream && isPlain };
}

/** What holds usage: JSON and event streams, and what small servers send if they set no type. */
const sniffedTypes = new Set(["text/event-stream", "application/json", "text/json", "text/plain", ""]);

/** Of the response before, which the next one nearly always has too. */
let latest: MediaType | undefined;

export function mediaTypeOf(contentType: string | null): MediaType {
  if (latest?.contentType === contentType) return latest;
  const type = (contentType?.split(";", 1)[0] ?? "").trim().toLowerCase();
  const isSniffed = sniffedTypes.has(type);
  const isJson = type === "application/json" || type === "text/json" || type.endsWith("+json");
  const text = type === "application/x-ndjson" ? "lines" : isSniffed || isJson ? "text" : undefined;
  return (latest = { contentType, isEventStream: type === "text/event-stream", isJson, isSniffed, text });
}

/** How much a decoder of what strangers send passes on at once, in bytes: many empty members or frames cost it little. */
const chunkSize = 64 * 1024;

interface Encoding {
  create: (options: ZlibOptions & ZstdOptions) => Transform;
  /** Has a decoder pass on what is there where the end is missing. */
  flush: number;
}

const gzip: Encoding = { create: createGunzip, flush: constants.Z_SYNC_FLUSH };
const known: ReadonlyMap<string, Encoding> = new Map([
  ["gzip", gzip],
  ["x-gzip", gzip],
  ["deflate", { create: createInflate, flush: constants.Z_SYNC_FLUSH }],
  ["br", { create: createBrotliDecompress, flush: constants.BROTLI_OPERATION_FLUSH }],
  ["zstd", { create: createZstdDecompress, flush: constants.ZSTD_e_flush }],
]);

/** Decodes responses: passes on what is flushed. @param needsEnd fails if the end is missing, except of zstd (Bun 1.4.5) */
function createLenient(name: string, needsEnd: boolean): Transform[] {
  const encoding = known.get(name);
  return encoding === undefined
    ? []
    : [encoding.create(needsEnd && name !== "zstd" ? {} : { finishFlush: encoding.flush })];
}

/** Fails at what is broken. */
function createStrict(name: string, firstByte: number): Transform {
  // RFC 9110 section 8.4.1.2: it means zlib's format, whose first byte ends in 8, but some clients send the raw one.
  if (name === "deflate" && (firstByte & 0x0f) !== 8) return createInflateRaw({ chunkSize });
  const encoding = known.get(name);
  if (encoding === undefined) throw new Error(`The encoding ${name} is unknown`);
  // RFC 9659: a window of at most 8 MiB.
  return encoding.create({ chunkSize, ...(name === "zstd" && { params: { [constants.ZSTD_d_windowLogMax]: 23 } }) });
}

/** A small response can unpack to terabytes; no real response is larger than this, in bytes. */
const maxDecodedLength = 2 ** 31;

export type Decompressor = NonNullable<ReturnType<typeof createDecompressor>>;

/** More of them have no use. */
const maxEncodings = 3;

/**
 * Passes on what it decompresses and keeps none of it. Reads a broken, endless or truncated body as far as possible.
 * @param encodings in lower case, in the order in which they were applied
 * @returns undefined if one of them is unknown
 */
export function createDecompressor(encodings: readonly string[], onDecoded: (chunk: Uint8Array) => void) {
  if (!areKnown(encodings)) return undefined;
  let chain: DecoderChain | undefined;
  let closed = Promise.resolve();
  /** Resolves the promise of the last push, which found the decoder's buffer full. */
  let resume = (): void => undefined;

  function start({ first, last }: DecoderChain): void {
    let decodedLength = 0;
    last.on("data", (chunk: Uint8Array) => {
      decodedLength += chunk.length;
      if (decodedLength > maxDecodedLength) last.destroy();
      else onDecoded(chunk);
    });
    first.on("drain", () => resume());
    closed = new Promise((resolve) => {
      last.once("close", resolve);
    });
    void closed.then(() => {
      first.destroy();
      resume();
    });
  }

  return {
    /** @returns a promise if the decoder's buffer is full: the next chunk should wait for it */
    push(chunk: Uint8Array): Promise<void> | undefined {
      if (chunk.length === 0) return undefined;
      if (chain === undefined) start((chain = linkDecoders(createDecoders(encodings, false))));
      if (chain.first.destroyed || chain.first.write(chunk)) return undefined;
      return new Promise((resolve) => {
        resume = resolve;
      });
    },
    /** Resolves after the last decompressed chunk was passed on. */
    end(): Promise<void> {
      chain?.first.end();
      return closed;
    },
  };
}

/** The encodings that a `Content-Encoding` names, in lower case, in the order in which they were applied. */
export function encodingsOf(contentEncoding: string): readonly string[] {
  if (contentEncoding === "") return [];
  const names = contentEncoding.split(",").map((name) => name.trim().toLowerCase());
  return names.filter((name) => name !== "" && name !== "identity");
}

/**
 * Undoes one encoding of a whole body, outside of the event loop and not ahead of the consumer. The stream fails at what is
 * broken. To undo several with `pipe` would hide how much there is between them.
 */
export function createStrictDecodedStream(bytes: Uint8Array, encoding: string): ReadableStream<Uint8Array> {
  const decoder = createStrict(encoding, bytes[0] ?? 0);
  decoder.end(bytes);
  // Node's types of web streams are not the global ones.
  return Readable.toWeb(decoder) as unknown as ReadableStream<Uint8Array>;
}

/**
 * Nothing is decoded ahead of the consumer. Fails if the body ends too soon: once it is decoded, no client could tell.
 * @returns undefined if an encoding is unknown
 */
export function createDecodedStream(
  body: ReadableStream<Uint8Array>,
  encodings: readonly string[],
): ReadableStream<Uint8Array> | undefined {
  if (!areKnown(encodings)) return undefined;
  const chain = createDecoders(encodings, true);
  const last = chain.at(-1);
  if (last === undefined) return body;
  // Node's types of web streams are not the global ones.
  const source = Readable.fromWeb(body as unknown as NodeReadableStream<Uint8Array>);
  // A failure on either side shows as a failure of the stream.
  pipeline([source, ...chain], () => {});
  return Readable.toWeb(last) as unknown as ReadableStream<Uint8Array>;
}

export function areKnown(encodings: readonly string[]): boolean {
  return encodings.length <= maxEncodings && encodings.every((name) => known.has(name));
}

/** The encoding that was applied last is decoded first. */
function createDecoders(encodings: readonly string[], needsEnd: boolean): Transform[] {
  return encodings.toReversed().flatMap((name) => createLenient(name, needsEnd));
}

interface DecoderChain {
  first: Transform;
  last: Transform;
}

/** After an error, what was decoded before it is still decoded further. */
function linkDecoders(chain: readonly Transform[]): DecoderChain {
  for (const [index, decoder] of chain.entries()) {
    const next = chain[index + 1];
    decoder.on("error", () => next?.end());
    if (next !== undefined) decoder.pipe(next);
  }
  const [first, last] = [chain[0], chain.at(-1)];
  if (first === undefined || last === undefined) throw new Error("No encoding is given");
  return { first, last };
}
