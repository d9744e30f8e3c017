const lineFeed = 0x0a;

export interface ResponseEvents {
  /** Called with each part of a body. */
  body(bytes: Buffer): void;
  end(status: number): void;
}

/**
 * Reads a sequence of HTTP/1.1 responses from a connection. It is as cheap as possible, because it shares its core with the
 * backend: it supports `Content-Length` and chunks and expects a head in few pieces.
 */
export function createResponseReader(events: ResponseEvents): (bytes: Buffer) => void {
  let incomplete: Buffer | undefined;
  let status = 0;
  let [chunked, isBody] = [false, false];
  /** Bytes left of the body, or of the chunk and its line end; -1: a chunk's size is next. */
  let remaining = 0;

  const end = (): void => {
    isBody = false;
    events.end(status);
  };

  function readHead(bytes: Buffer, at: number): number {
    const headEnd = bytes.indexOf("\r\n\r\n", at);
    if (headEnd === -1) return -1;
    ({ status, chunked, length: remaining } = parseHead(bytes.toString("latin1", at, headEnd)));
    isBody = true;
    if (remaining === 0) end();
    return headEnd + 4;
  }

  function readChunkSize(bytes: Buffer, at: number): number {
    const lineEnd = bytes.indexOf(lineFeed, at);
    if (lineEnd === -1) return -1;
    const size = Number.parseInt(bytes.toString("latin1", at, lineEnd), 16);
    if (size > 0) {
      remaining = size + 2;
      return lineEnd + 1;
    }
    // The empty line after the last chunk must have arrived too.
    if (bytes.length < lineEnd + 3) return -1;
    end();
    return lineEnd + 3;
  }

  function readBody(bytes: Buffer, at: number): number {
    const to = Math.min(bytes.length, at + remaining);
    // Without the line end of a chunk, which may arrive separately.
    const bodyEnd = chunked ? Math.min(to, at + remaining - 2) : to;
    if (bodyEnd > at) events.body(bytes.subarray(at, bodyEnd));
    remaining -= to - at;
    if (remaining === 0 && chunked) remaining = -1;
    else if (remaining === 0) end();
    return to;
  }

  return (arrived) => {
    const bytes = incomplete === undefined ? arrived : Buffer.concat([incomplete, arrived]);
    incomplete = undefined;
    let at = 0;
    while (at < bytes.length) {
      const next = isBody ? (remaining < 0 ? readChunkSize(bytes, at) : readBody(bytes, at)) : readHead(bytes, at);
      if (next < 0) {
        incomplete = Buffer.from(bytes.subarray(at));
        return;
      }
      at = next;
    }
  };
}

/** @returns length -1 for chunks */
function parseHead(head: string): { status: number; chunked: boolean; length: number } {
  const status = Number(head.slice(9, 12));
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
  const chunked = length === undefined && status !== 204 && status !== 304;
  return { status, chunked, length: chunked ? -1 : Number(length ?? 0) };
}
