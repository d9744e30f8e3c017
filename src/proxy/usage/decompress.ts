import { pipeline, Readable, type Transform } from "node:stream";
import type { ReadableStream as NodeReadableStream } from "node:stream/web";
import { constants, createBrotliDecompress, createZstdDecompress } from "node:zlib";
import { createInflater, deflateFormat, gzipFormat } from "./inflate.ts";

/** Each one passes on what is flushed, even if the end is missing. */
const decoders: ReadonlyMap<string, () => Transform> = new Map([
  ["gzip", () => createInflater(gzipFormat)],
  ["x-gzip", () => createInflater(gzipFormat)],
  ["deflate", () => createInflater(deflateFormat)],
  ["br", () => createBrotliDecompress({ finishFlush: constants.BROTLI_OPERATION_FLUSH })],
  ["zstd", () => createZstdDecompress({ finishFlush: constants.ZSTD_e_flush })],
]);

/** A small response can unpack to terabytes; no real response is larger than this, in bytes. */
const maxDecodedLength = 2 ** 31;

/** Passes on what it decompresses and keeps none of it. Reads a broken, endless or truncated body as far as possible. */
export interface Decompressor {
  /** @returns a promise if the decoder's buffer is full: the next chunk should wait for it */
  push(chunk: Uint8Array): Promise<void> | undefined;
  /** Resolves after the last decompressed chunk was passed on. */
  end(): Promise<void>;
}

/** More of them have no use. */
const maxEncodings = 3;

/**
 * @param encodings in lower case, in the order in which they were applied
 * @returns undefined if one of them is unknown
 */
export function createDecompressor(
  encodings: readonly string[],
  onDecoded: (chunk: Uint8Array) => void,
): Decompressor | undefined {
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
    push(chunk) {
      if (chunk.length === 0) return undefined;
      if (chain === undefined) start((chain = linkDecoders(createDecoders(encodings))));
      if (chain.first.destroyed || chain.first.write(chunk)) return undefined;
      return new Promise((resolve) => {
        resume = resolve;
      });
    },
    end() {
      chain?.first.end();
      return closed;
    },
  };
}

/** Nothing is decoded ahead of the consumer. @returns undefined if an encoding is unknown */
export function createDecodedStream(
  body: ReadableStream<Uint8Array>,
  encodings: readonly string[],
): ReadableStream<Uint8Array> | undefined {
  if (!areKnown(encodings)) return undefined;
  const chain = createDecoders(encodings);
  const last = chain.at(-1);
  if (last === undefined) return body;
  // Node's types of web streams are not the global ones.
  const source = Readable.fromWeb(body as unknown as NodeReadableStream<Uint8Array>);
  // A failure on either side shows as a failure of the stream.
  pipeline([source, ...chain], () => {});
  return Readable.toWeb(last) as unknown as ReadableStream<Uint8Array>;
}

function areKnown(encodings: readonly string[]): boolean {
  return encodings.length <= maxEncodings && encodings.every((name) => decoders.has(name));
}

/** The encoding that was applied last is decoded first. */
function createDecoders(encodings: readonly string[]): Transform[] {
  return encodings.toReversed().flatMap((name) => decoders.get(name)?.() ?? []);
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
