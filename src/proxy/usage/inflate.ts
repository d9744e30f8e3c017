import { Transform, type TransformCallback } from "node:stream";
import { constants, createInflateRaw, type InflateRaw } from "node:zlib";

/** What surrounds the raw data of gzip and deflate. */
export interface InflateFormat {
  /** @returns undefined if the header is unfinished, NaN if these bytes are not a header */
  headerLength(bytes: Uint8Array): number | undefined;
  /** How long what stands between the data and the next header is; undefined if nothing follows. */
  trailerLength: number | undefined;
}

const maxHeaderLength = 64 * 1024;
const nothing = new Uint8Array();

/**
 * Decodes gzip or deflate without checking its checksums, and ignores what follows its end: zlib's own decoders lose what
 * they decoded last when they find an error there. Decodes no faster than it is read: a chunk can unpack to a thousand
 * times its length.
 * @param needsEnd fails if the data end too soon
 */
export function createInflater({ headerLength, trailerLength }: InflateFormat, needsEnd: boolean): Transform {
  let raw: InflateRaw | undefined;
  let header: Uint8Array = nothing;
  let trailerLeft = 0;
  let state: "first member" | "next member" | "ended" = "first member";

  function startRaw(): InflateRaw {
    const started = createInflateRaw(needsEnd ? {} : { finishFlush: constants.Z_SYNC_FLUSH });
    started.on("data", (decoded: Uint8Array) => {
      if (!transform.push(decoded)) started.pause();
    });
    started.on("error", (error) => transform.destroy(error));
    return started;
  }

  /** @returns the bytes after the header */
  function readHeader(bytes: Uint8Array): Uint8Array {
    const skipped = Math.min(trailerLeft, bytes.length);
    trailerLeft -= skipped;
    header = Buffer.concat([header, bytes.subarray(skipped)]);
    const length = headerLength(header);
    if (length === undefined && header.length <= maxHeaderLength) return nothing;
    if (length === undefined || Number.isNaN(length)) {
      if (state === "first member") throw new Error("The body is not in the format of its Content-Encoding");
      state = "ended";
      return nothing;
    }
    raw = startRaw();
    const rest = header.subarray(length);
    header = nothing;
    return rest;
  }

  /** @returns the bytes after the end of the member's data */
  async function inflate(member: InflateRaw, bytes: Uint8Array): Promise<Uint8Array> {
    const before = member.bytesWritten;
    await new Promise<unknown>((resolve) => void member.write(bytes, resolve));
    const consumed = member.bytesWritten - before;
    if (consumed === bytes.length || member.destroyed) return nothing;
    await untilRead(member);
    raw = undefined;
    state = trailerLength === undefined ? "ended" : "next member";
    trailerLeft = trailerLength ?? 0;
    return bytes.subarray(consumed);
  }

  async function decode(chunk: Uint8Array): Promise<void> {
    let rest = chunk;
    while (rest.length > 0 && state !== "ended") rest = raw === undefined ? readHeader(rest) : await inflate(raw, rest);
  }

  async function finish(): Promise<void> {
    if (needsEnd && state === "first member" && header.length > 0) throw new Error("The body ends in its header");
    raw?.end();
    if (raw !== undefined) await untilRead(raw);
  }

  const transform = new Transform({
    transform: (chunk: Uint8Array, _encoding, callback) => void callAfter(decode(chunk), callback),
    flush: (callback) => void callAfter(finish(), callback),
    read(size) {
      raw?.resume();
      // oxlint-disable-next-line no-underscore-dangle -- what Node calls a stream's own read
      Transform.prototype._read.call(this, size);
    },
    destroy(error, callback) {
      raw?.destroy();
      callback(error);
    },
  });
  return transform;
}

async function callAfter(work: Promise<void>, callback: TransformCallback): Promise<void> {
  let failure: Error | undefined;
  try {
    await work;
  } catch (error) {
    failure = error instanceof Error ? error : new Error("Decoding failed", { cause: error });
  }
  callback(failure);
}

/** Resolves after the last decoded bytes were passed on, or after an error. */
async function untilRead(member: InflateRaw): Promise<void> {
  if (member.readableEnded || member.destroyed) return;
  await new Promise<unknown>((resolve) => {
    member.once("end", resolve);
    member.once("close", resolve);
  });
}

/** RFC 1952. */
export const gzipFormat: InflateFormat = {
  trailerLength: 8,
  headerLength(bytes) {
    if ((bytes[0] ?? 0x1f) !== 0x1f || (bytes[1] ?? 0x8b) !== 0x8b || (bytes[2] ?? 8) !== 8) return Number.NaN;
    const flags = bytes[3] ?? 0;
    let length = 10;
    if ((flags & 4) !== 0) length += 2 + (bytes[length] ?? 0) + 256 * (bytes[length + 1] ?? 0);
    for (const text of [8, 16]) {
      if ((flags & text) === 0) continue;
      const end = bytes.indexOf(0, length);
      if (end < 0) return undefined;
      length = end + 1;
    }
    if ((flags & 2) !== 0) length += 2;
    return length <= bytes.length ? length : undefined;
  },
};

/** RFC 9110 section 8.4.1.2: deflate means zlib's format, but some send the raw one. Zlib's first byte ends in 8. */
export const isZlib = (firstByte: number): boolean => (firstByte & 0x0f) === 8;

export const deflateFormat: InflateFormat = {
  trailerLength: undefined,
  headerLength(bytes) {
    const length = isZlib(bytes[0] ?? 0) ? 2 : 0;
    return length <= bytes.length && bytes.length > 0 ? length : undefined;
  },
};
