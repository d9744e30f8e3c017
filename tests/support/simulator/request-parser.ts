import { createMessageParser, findHeader, type Header, NotHttp } from "../http-parser.ts";

export interface RequestHead {
  method: string;
  /** Copied from the request line, neither decoded nor normalised. */
  target: string;
  /** In their original order and spelling. */
  headers: readonly Header[];
}

interface RequestEvents {
  head(head: RequestHead): void;
  body(bytes: Uint8Array): void;
  end(): void;
}

/** @returns what takes the bytes of one request, and returns undefined until it ends and then the bytes that follow it */
export function createRequestParser({ head, ...events }: RequestEvents): (bytes: Buffer) => Buffer | undefined {
  return createMessageParser({
    ...events,
    head(startLine, headers) {
      const [method = "", target = "", version = ""] = startLine.split(" ");
      if (!/^HTTP\/1\.[01]$/.test(version)) throw new NotHttp("The request line is not HTTP/1");
      const isChunked = /\bchunked$/i.test(findHeader(headers, "transfer-encoding") ?? "");
      const length = Number(findHeader(headers, "content-length") ?? 0);
      if (!Number.isSafeInteger(length) || length < 0) throw new NotHttp("The length is not a number");
      head({ method, target, headers });
      return isChunked ? "chunked" : length;
    },
  }).feed;
}
