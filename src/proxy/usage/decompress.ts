import type { Transform } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw, createZstdDecompress } from "node:zlib";

type CreateDecoder = (firstByte: number) => Transform;

const decoders: Readonly<Record<string, CreateDecoder>> = {
  gzip: () => createGunzip(),
  "x-gzip": () => createGunzip(),
  // RFC 9110 section 8.4.1.2: deflate means zlib's format, but some send the raw one. Zlib's first byte ends in 8.
  deflate: (firstByte) => ((firstByte & 0x0f) === 8 ? createInflate() : createInflateRaw()),
  br: () => createBrotliDecompress(),
  zstd: () => createZstdDecompress(),
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
      const firstByte = chunk[0];
      if (firstByte === undefined) return undefined;
      decoder ??= start(createDecoder(firstByte));
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
