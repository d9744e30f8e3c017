import type { Script } from "./script.ts";
import { type SimulatedResponse, tick } from "./simulated-response.ts";
import { constants, deflateRawSync } from "node:zlib";

/** One event, or a whole body. */
export type BodyPiece = string | Uint8Array | typeof tick;

export interface PlannedBody {
  pieces: Iterable<BodyPiece>;
  /** Bytes, if known before sending. */
  length: number | undefined;
}

/** The response's body with the script's changes applied. */
export function planBody(response: SimulatedResponse, script: Script, path: string): PlannedBody {
  if (script.bodyBytes !== undefined) return { pieces: blocks(script.bodyBytes), length: script.bodyBytes };
  const whole = response.body === undefined ? undefined : truncated(response.body, script.truncateJsonFrame === 1);
  if (whole !== undefined && script.flood === true) return { pieces: endless(whole), length: undefined };
  if (whole !== undefined && script.gzip !== true) return { pieces: [whole], length: Buffer.byteLength(whole) };
  const pieces = whole === undefined ? alteredFrames(response.frames ?? [], script, path) : [whole];
  return { pieces: script.gzip === true ? gzipPieces(pieces) : pieces, length: undefined };
}

const blockBytes = 64 * 1024;

/** Bytes 0 to 255 over and over, so that a receiver can detect missing ones. */
function* blocks(total: number): Generator<Uint8Array> {
  const block = Uint8Array.from({ length: blockBytes }, (_, index) => index);
  for (let left = total; left > 0; left -= blockBytes) yield left < blockBytes ? block.subarray(0, left) : block;
}

function* endless(piece: string | Uint8Array): Generator<BodyPiece> {
  for (;;) yield piece;
}

function truncated(body: string | Uint8Array, cut: boolean): string | Uint8Array {
  return cut ? body.slice(0, body.length / 2) : body;
}

function* alteredFrames(frames: Iterable<BodyPiece>, script: Script, path: string): Generator<BodyPiece> {
  let frame = 0;
  for (const piece of frames) {
    if (typeof piece !== "string") {
      yield piece;
      continue;
    }
    frame++;
    const comment = script.comments === true ? ": keep-alive\n\n" : "";
    const text = frame === script.truncateJsonFrame ? `${piece.slice(0, piece.length / 2)}\n\n` : piece;
    yield newLines(comment + text, script);
    if (frame === script.errorAfterFrame) {
      yield* errorFrames(path);
      return;
    }
  }
}

function newLines(text: string, { crlf }: Script): string {
  return crlf === true ? text.replaceAll("\n", "\r\n") : text;
}

/** How backends report a failure after the head: inside the stream, which then ends cleanly. */
function* errorFrames(path: string): Generator<BodyPiece> {
  const message = "The engine stopped while generating";
  if (path.startsWith("/v1/messages")) {
    yield `event: error\ndata: {"type":"error","error":{"type":"api_error","message":"${message}"}}\n\n`;
  } else {
    yield `data: {"error":{"message":"${message}","type":"InternalServerError","param":null,"code":500}}\n\n`;
    yield "data: [DONE]\n\n";
  }
}

const gzipHeader = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]);
/** An empty final deflate block. */
const gzipLastBlock = [3, 0];

/**
 * One gzip member (RFC 1952) that a reader can decompress as it arrives: each piece is flushed to a byte boundary, as
 * servers do when they compress event streams.
 */
export function* gzipPieces<Other extends symbol>(
  pieces: Iterable<string | Uint8Array | Other>,
): Generator<Uint8Array | Other> {
  let checksum = 0;
  let length = 0;
  yield gzipHeader;
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
  trailer.set(gzipLastBlock);
  trailer.writeUInt32LE(checksum, 2);
  trailer.writeUInt32LE(length % 2 ** 32, 6);
  yield trailer;
}
