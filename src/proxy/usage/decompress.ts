import type { Transform } from "node:stream";
import { constants, createBrotliDecompress, createZstdDecompress } from "node:zlib";
import { createInflater, deflateFormat, gzipFormat } from "./inflate.ts";

/** Each one passes on what is flushed, even if the end is missing. */
const decoders: Readonly<Record<string, () => Transform>> = {
  gzip: () => createInflater(gzipFormat),
  "x-gzip": () => createInflater(gzipFormat),
  deflate: () => createInflater(deflateFormat),
  br: () => createBrotliDecompress({ finishFlush: constants.BROTLI_OPERATION_FLUSH }),
  zstd: () => createZstdDecompress({ finishFlush: constants.ZSTD_e_flush }),
};

/** A small response can unpack to terabytes; no real response is larger than this, in bytes. */
const maxDecodedLength = 2 ** 31;

/** Passes on what it decompresses and keeps none of it. Reads a broken, endless or truncated body as far as possible. */
export interface Decompressor {
  /** @returns a promise if the decoder's buffer is full: the next chunk should wait for it */
  push(chunk: Uint8Array): Promise<void> | undefined;
  /** Resolves after the last decompressed chunk was passed on. */
  end(): Promise<void>;
}

/** @param contentEncoding in lower case. @returns undefined if it is unknown */
export function createDecompressor(
  contentEncoding: string,
  onDecoded: (chunk: Uint8Array) => void,
): Decompressor | undefined {
  const createDecoder = decoders[contentEncoding];
  if (createDecoder === undefined) return undefined;
  let decoder: Transform | undefined;
  let closed = Promise.resolve();
  /** Resolves the promise of the last push, which found the decoder's buffer full. */
  let resume = (): void => undefined;

  function start(started: Transform): Transform {
    let decodedLength = 0;
    started.on("data", (chunk: Uint8Array) => {
      decodedLength += chunk.length;
      if (decodedLength > maxDecodedLength) started.destroy();
      else onDecoded(chunk);
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
      if (chunk.length === 0) return undefined;
      decoder ??= start(createDecoder());
      if (decoder.destroyed || decoder.write(chunk)) return undefined;
      return new Promise((resolve) => {
        resume = resolve;
      });
    },
    end() {
      decoder?.end();
      return closed;
    },
  };
}
