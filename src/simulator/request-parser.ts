import type { Header } from "./answer.ts";

export interface RequestHead {
  method: string;
  /** As it stood in the request line, nothing decoded or normalised. */
  target: string;
  /** In the order and spelling in which they came. */
  headers: readonly Header[];
}

export interface RequestEvents {
  head(head: RequestHead): void;
  body(bytes: Uint8Array): void;
  end(): void;
}

export class MalformedRequest extends Error {
  override name = "MalformedRequest";
}

/** Room for the longest head that a test sends; a client that sends more is not speaking HTTP. */
const maxHeadBytes = 8 * 1024 * 1024;
const endOfHead = Buffer.from("\r\n\r\n");
const endOfLine = Buffer.from("\r\n");

/**
 * A push parser of HTTP/1.1 requests: knows bytes, no sockets. Feed it what arrives; it reports one message and stops.
 * @returns `feed`, which gives back the bytes that belong to the next message, or undefined while this one lasts
 * @throws MalformedRequest from `feed`
 */
export function createRequestParser(events: RequestEvents): (bytes: Buffer) => Buffer | undefined {
  let rest: Buffer = Buffer.alloc(0);
  let step: "head" | "fixed" | "chunk-size" | "chunk" | "trailers" | "done" = "head";
  /** Bytes still to come of the fixed body, or of the chunk and the line end behind it. */
  let remaining = 0;

  const takeUntil = (mark: Buffer): string | undefined => {
    const at = rest.indexOf(mark);
    if (at === -1) {
      if (rest.length > maxHeadBytes) throw new MalformedRequest("A head or line is too long");
      return undefined;
    }
    const text = rest.toString("latin1", 0, at);
    rest = rest.subarray(at + mark.length);
    return text;
  };

  const readHead = (): boolean => {
    const text = takeUntil(endOfHead);
    if (text === undefined) return false;
    const head = parseHead(text);
    events.head(head);
    const framing = bodyFraming(head);
    step = framing === "chunked" ? "chunk-size" : "fixed";
    remaining = framing === "chunked" ? 0 : framing;
    return true;
  };

  const readFixed = (): boolean => {
    const bytes = rest.subarray(0, remaining);
    if (bytes.length > 0) events.body(bytes);
    rest = rest.subarray(bytes.length);
    remaining -= bytes.length;
    if (remaining > 0) return false;
    step = "done";
    return true;
  };

  const readChunkSize = (): boolean => {
    const line = takeUntil(endOfLine);
    if (line === undefined) return false;
    const size = /^[0-9a-f]{1,12}(?=$|;)/i.exec(line)?.[0];
    if (size === undefined) throw new MalformedRequest("A chunk has no size");
    remaining = Number.parseInt(size, 16) + endOfLine.length;
    step = remaining === endOfLine.length ? "trailers" : "chunk";
    return true;
  };

  const readChunk = (): boolean => {
    const data = rest.subarray(0, Math.max(0, remaining - endOfLine.length));
    if (data.length > 0) events.body(data);
    const taken = Math.min(rest.length, remaining);
    rest = rest.subarray(taken);
    remaining -= taken;
    if (remaining > 0) return false;
    step = "chunk-size";
    return true;
  };

  const readTrailers = (): boolean => {
    const line = takeUntil(endOfLine);
    if (line === undefined) return false;
    if (line === "") step = "done";
    return true;
  };

  const steps = {
    head: readHead,
    fixed: readFixed,
    "chunk-size": readChunkSize,
    chunk: readChunk,
    trailers: readTrailers,
    done: () => false,
  };
  return (bytes) => {
    rest = rest.length === 0 ? bytes : Buffer.concat([rest, bytes]);
    let getsOn = true;
    while (getsOn) getsOn = steps[step]();
    if (step !== "done") return undefined;
    events.end();
    return rest;
  };
}

function parseHead(text: string): RequestHead {
  const [requestLine = "", ...lines] = text.split("\r\n");
  const [method = "", target = "", version = ""] = requestLine.split(" ");
  if (!/^HTTP\/1\.[01]$/.test(version)) throw new MalformedRequest("The request line is not HTTP/1");
  const headers = lines.map((line): Header => {
    const colon = line.indexOf(":");
    if (colon < 1) throw new MalformedRequest("A header has no name");
    return [line.slice(0, colon), line.slice(colon + 1).trim()];
  });
  return { method, target, headers };
}

function bodyFraming({ headers }: RequestHead): number | "chunked" {
  let length = 0;
  for (const [name, value] of headers) {
    const lowerName = name.toLowerCase();
    if (lowerName === "transfer-encoding" && /\bchunked$/i.test(value)) return "chunked";
    if (lowerName === "content-length") length = Number(value);
  }
  if (!Number.isSafeInteger(length) || length < 0) throw new MalformedRequest("The length is not a number");
  return length;
}
