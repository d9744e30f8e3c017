import { ProxyError } from "../errors.ts";
import type { StartReadTimeout } from "../upstream/read-timeout.ts";

/** Larger JSON bodies are refused, because a rewrite would have to hold them. */
export const maxJsonBodyBytes = 128 * 1024 * 1024;

/** 128 MiB over a slow line. Bounds how long a client that stops halfway keeps its connection. */
const heldBodyMs = 60 * 60_000;

export interface ReadBody {
  /** The stream as it arrives, or the whole body if it may need a rewrite. */
  body: ReadableStream<Uint8Array<ArrayBuffer>> | Uint8Array<ArrayBuffer> | null;
  /** The whole body's text; undefined if it is not held or not UTF-8. */
  text: string | undefined;
}

/**
 * Holds a body that may need a rewrite, and leaves any other to be streamed.
 * @throws ProxyError if the body is too large to hold, or does not arrive in time
 */
export async function readBody(request: Request, startReadTimeout: StartReadTimeout): Promise<ReadBody> {
  if (!isRewritable(request)) return { body: request.body, text: undefined };
  const bytes = await inTime(findWholeBody(request), startReadTimeout);
  if (bytes === undefined) throw new ProxyError("body_too_large");
  return { body: bytes, text: findText(bytes) };
}

/**
 * Whether a request's body may need a rewrite: a POST with a JSON content type, or with none. `Content-Encoding` does
 * not count: many backends ignore it too, and a body that really is compressed is not JSON text.
 */
export function isRewritable(request: Request): boolean {
  if (request.method !== "POST") return false;
  const type = request.headers.get("content-type") ?? "";
  return type === "" || isJson(type);
}

/** `application/json` and the `+json` types (RFC 6839), whatever their parameters. */
export function isJson(contentType: string): boolean {
  return /^\s*[\w.+-]+\/(?:[\w.-]+\+)?json\s*(?:;|$)/i.test(contentType);
}

/** The whole body, or undefined if it is longer than `maxBytes`; no more than that is held. */
export function findWholeBody(
  request: Request,
  maxBytes = maxJsonBodyBytes,
): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const declared = request.headers.get("content-length");
  if (declared === null) return gatherBody(request, maxBytes);
  return Number(declared) > maxBytes ? Promise.resolve(undefined) : request.bytes();
}

async function gatherBody(request: Request, maxBytes: number): Promise<Uint8Array<ArrayBuffer> | undefined> {
  if (request.body === null) return new Uint8Array();
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of request.body) {
    length += chunk.byteLength;
    if (length > maxBytes) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, length);
}

function inTime<T>(body: Promise<T>, startReadTimeout: StartReadTimeout): Promise<T> {
  return new Promise((resolve, reject) => {
    const timeout = startReadTimeout(heldBodyMs, () => reject(new ProxyError("request_timeout")));
    timeout.beginWait();
    body.then(resolve, reject).finally(timeout.clear);
  });
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Text of UTF-8 bytes such that encoding it again yields the same bytes; undefined for bytes that are not UTF-8. */
export function findText(bytes: Uint8Array): string | undefined {
  try {
    return utf8.decode(bytes);
  } catch {
    return undefined;
  }
}
