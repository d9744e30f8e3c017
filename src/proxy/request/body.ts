import { ProxyError } from "../errors.ts";
import { noProgressMs } from "../upstream/abort-reason.ts";
import type { ReadTimeout, StartReadTimeout } from "../upstream/read-timeout.ts";
import { resumedStream } from "../upstream/resumed-stream.ts";
import type { HeldShare } from "./held-bytes.ts";

/** Bodies up to this length are read in one go, which is cheaper; the whole of them has to arrive within `noProgressMs`. */
const shortBytes = 64 * 1024;

/** A body of unknown length is gathered in pieces up to here, and then in one buffer of the largest size allowed. */
const gatheredBytes = 1024 * 1024;

/** Of a long body, taken at a time; receiving them takes 1 to 2 ms. The runtime reads no further than we do. */
const sliceBytes = 1024 * 1024;

type Bytes = Uint8Array<ArrayBuffer>;

/** The whole body if it may need a rewrite, else the stream as it arrives, or null. */
export type ReadBody = Bytes | ReadableStream<Bytes> | null;

export interface ReadBodyDeps {
  startReadTimeout: StartReadTimeout;
  held: HeldShare;
  /** The largest body that is held. */
  maxBytes: number;
  /** Resolves when others had their turn. */
  waitForTurn: () => Promise<void>;
}

/**
 * Holds a body that may need a rewrite, and leaves any other to be streamed.
 * @param rewritesPath the path's bodies are JSON whatever their content type says
 * @throws ProxyError if the body is too large to hold, the budget is used up, or the client stops sending
 */
export async function readBody(request: Request, rewritesPath: boolean, deps: ReadBodyDeps): Promise<ReadBody> {
  if (isRewritable(request)) return holdWhole(request, deps);
  if (rewritesPath && mayBeMislabelledJson(request)) return holdIfJson(request, deps);
  return request.body;
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

/**
 * `curl -d '{…}'` sends `application/x-www-form-urlencoded`, and llama.cpp and Ollama read it as JSON all the same. A
 * multipart or encoded body cannot be that.
 */
function mayBeMislabelledJson({ method, headers }: Request): boolean {
  const encoding = headers.get("content-encoding") ?? "identity";
  return (
    method === "POST" && !/^\s*multipart\//i.test(headers.get("content-type") ?? "") && /^identity$/i.test(encoding)
  );
}

function holdWhole(request: Request, deps: ReadBodyDeps): Promise<Bytes> {
  const length = declaredLength(request, deps);
  if (length !== undefined && length <= shortBytes) return readShort(request, deps);
  return gather(readerOf(request), [], length, deps);
}

/** Reads up to the first byte that is not white space, and on if that begins a JSON object. */
async function holdIfJson(request: Request, deps: ReadBodyDeps): Promise<ReadBody> {
  if (request.body === null) return null;
  const reader = request.body.getReader();
  const first: Bytes[] = [];
  let start: number | undefined;
  while (start === undefined) {
    const chunk = await readChunk(reader, deps);
    if (chunk === undefined) break;
    first.push(chunk);
    start = chunk.find((byte) => !whiteSpace.has(byte));
    if (first.length > maxBlankChunks) break;
  }
  if (start !== openBrace) return resumedStream(first, reader);
  return gather(reader, first, declaredLength(request, deps), deps);
}

const openBrace = 0x7b;
/** Of JSON (RFC 8259 section 2). */
const whiteSpace: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d]);
const maxBlankChunks = 16;

/** Takes the budget before anything is read. @throws ProxyError */
function declaredLength(request: Request, { held, maxBytes }: ReadBodyDeps): number | undefined {
  const declared = request.headers.get("content-length");
  // The same length sent twice arrives as `5, 5`.
  const isDeclared = declared !== null && /^\d+$/.test(declared);
  // Only here: the getter makes a stream of the body, and reading its bytes then costs more.
  if (!isDeclared) return request.body === null ? 0 : undefined;
  const length = Number(declared);
  if (length === 0) return 0;
  if (length > maxBytes) throw new ProxyError("body_too_large");
  if (!held.take(length)) throw new ProxyError("too_many_bytes_held");
  return length;
}

function readShort(request: Request, { startReadTimeout }: ReadBodyDeps): Promise<Bytes> {
  return new Promise((resolve, reject) => {
    const timeout = startReadTimeout(noProgressMs, () => reject(new ProxyError("request_timeout")));
    timeout.beginWait();
    request.bytes().then(resolve, reject).finally(timeout.clear);
  });
}

type Reader = ReadableStreamDefaultReader<Bytes>;

const readerOf = (request: Request): Reader => (request.body ?? new Blob().stream()).getReader();

/**
 * Gathers a body without ever copying much of it at once: a body of megabytes goes into one buffer as it arrives, in
 * slices between which others get their turn, for a fast sender would keep the event loop for all of it. The buffer may
 * be larger than the body; memory that is not written to costs nothing.
 * @param first the chunks that were read already
 * @param length undefined if it was not declared; then the budget is taken as the body grows
 */
async function gather(reader: Reader, first: Bytes[], length: number | undefined, deps: ReadBodyDeps): Promise<Bytes> {
  const { maxBytes, held, waitForTurn } = deps;
  const chunks: Bytes[] = [];
  let whole: Bytes | undefined =
    length === undefined ? undefined : new Uint8Array(Buffer.allocUnsafeSlow(length).buffer);
  let received = 0;
  let portionEnd = sliceBytes;
  for (;;) {
    const chunk = first.shift() ?? (await readChunk(reader, deps));
    if (chunk === undefined) break;
    if (received + chunk.length > (length ?? maxBytes)) throw new ProxyError("body_too_large");
    if (length === undefined && !held.take(chunk.length)) throw new ProxyError("too_many_bytes_held");
    if (whole === undefined && received + chunk.length > gatheredBytes) {
      whole = new Uint8Array(Buffer.allocUnsafeSlow(maxBytes).buffer);
      let at = 0;
      for (const piece of chunks.splice(0)) {
        whole.set(piece, at);
        at += piece.length;
      }
    }
    if (whole === undefined) chunks.push(chunk);
    else whole.set(chunk, received);
    received += chunk.length;
    if (received >= portionEnd) {
      await waitForTurn();
      portionEnd = received + sliceBytes;
    }
  }
  return whole === undefined ? Buffer.concat(chunks, received) : whole.subarray(0, received);
}

/** @returns undefined at the end. @throws ProxyError if nothing comes for too long */
function readChunk(reader: Reader, { startReadTimeout }: ReadBodyDeps): Promise<Bytes | undefined> {
  return new Promise((resolve, reject) => {
    const timeout: ReadTimeout = startReadTimeout(noProgressMs, () => {
      reject(new ProxyError("request_timeout"));
      void reader.cancel().catch(() => {});
    });
    timeout.beginWait();
    reader
      .read()
      .then(({ value }) => resolve(value), reject)
      .finally(timeout.clear);
  });
}
