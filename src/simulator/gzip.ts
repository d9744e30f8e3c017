import { constants, deflateRawSync } from "node:zlib";

const header = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]);
/** An empty final deflate block. */
const lastBlock = [3, 0];

/**
 * One gzip member (RFC 1952) that a reader can decompress as it arrives: each piece is flushed to a byte boundary, as
 * servers do when they compress event streams.
 */
export function* gzipPieces<Other extends symbol>(
  pieces: Iterable<string | Uint8Array | Other>,
): Generator<Uint8Array | Other> {
  let checksum = 0;
  let length = 0;
  yield header;
  for (const piece of pieces) {
    if (typeof piece === "symbol") {
      yield piece;
      continue;
    }
    const bytes = Buffer.from(piece as string);
    checksum = Bun.hash.crc32(bytes, checksum);
    length += bytes.length;
    yield deflateRawSync(bytes, { finishFlush: constants.Z_SYNC_FLUSH });
  }
  const trailer = Buffer.alloc(10);
  trailer.set(lastBlock);
  trailer.writeUInt32LE(checksum, 2);
  trailer.writeUInt32LE(length % 2 ** 32, 6);
  yield trailer;
}
