// The body of a request: held, because something reads it, or passed as it comes.
//
// Key and path say which, and what is read of it. On the specification's five paths each body that may be a JSON object is
// held, decoded and rewritten; from a key with rules it must be one. Where bodies name stored ids it is looked through, and
// elsewhere it is rewritten if it says that it is JSON, or searched for a model if it is a form. All others are streams.
//
// It keeps true: what is read is what the backend reads, or the request is refused; what came goes on byte for byte unless it
// is edited; nothing is decoded before the limits of the key were asked, or to more than a body may have; both count as held.
//
// Removed: a reader of its own for each kind of key; a second look at the content type after the body was read.

import { type ErrorDetails, ProxyError } from "../errors.ts";
import { findNotBlank, partOf } from "../json/bytes.ts";
import { type Party, readJsonInSteps, runByLength } from "../json/read.ts";
import { createSlot } from "../json/slots.ts";
import type { Endpoint } from "../rewrite/endpoint.ts";
import type { UpstreamRequest } from "../upstream/forward.ts";
import { resumedStream } from "../upstream/resumed-stream.ts";
import { areKnown, createStrictDecodedStream, encodingsOf } from "../stream/body-kind.ts";
import { modelOfForm, readFormModel } from "./form-model.ts";
import type { HeldShare } from "./body-budget-and-pace.ts";

/** Bodies up to this length are read in one go: a stream costs a tenth of all that a request of 100 kB costs. */
const shortBytes = 512 * 1024;
/** Bodies up to this length are taken to have come with their head. */
const headBytes = 64 * 1024;

/**
 * A long body is received in portions of this size, each of which takes 1 to 2 ms. The runtime reads no further than we do.
 * The buffer of one of unknown length doubles up to here, and then gets the largest size allowed.
 */
const portionBytes = 1024 * 1024;

export type Bytes = Uint8Array<ArrayBuffer>;

export interface ReceivedBody {
  /** What is sent if nothing is edited. */
  came: Bytes | ReadableStream<Bytes> | null;
  /** What is read of it, decoded; undefined: nothing. */
  plain: Bytes | undefined;
  /** What is read may be edited; else it is only looked through. */
  mayEdit: boolean;
  /** It is refused unless it is empty or a JSON object. */
  mustBeObject: boolean;
  /** It names an encoding, and was read all the same: decoded, or as the plain JSON that it is. */
  isEncoded: boolean;
  /** The model that a form names; undefined for any other body. */
  formModel: string | undefined;
}

export interface BodyRules {
  endpoint: Endpoint;
  /** The key may only send what its limits and models can be applied to. */
  mustBeReadable: boolean;
  /** Forms are searched for the model that they name. */
  readsForms: boolean;
  /** The key may use some models only: forms are held, and must name one of them. */
  checksForms: boolean;
}

/** It has not come with its head, and is waited for; it is decoded; whose what it names is, is looked up. */
export type BodyStep = "wait" | "decoding" | "look-up";

interface ReadBodyDeps {
  held: HeldShare;
  /** Asks the limits of the key before more is done for a body. */
  askLimits: (before: BodyStep) => Promise<void>;
  /** The largest body that is held. */
  maxBytes: number;
  /** Resolves when others had their turn. */
  waitForTurn: (party: Party) => Promise<void>;
  /** The key's id. */
  party: Party;
}

/** What a request has that brings no body. */
export const noBody: ReceivedBody = {
  came: null,
  plain: undefined,
  mayEdit: false,
  mustBeObject: false,
  isEncoded: false,
  formModel: undefined,
};

/** It may be empty if it is a stream. */
export const hasBody = ({ came }: Pick<ReceivedBody, "came">): boolean =>
  came !== null && (!(came instanceof Uint8Array) || came.length > 0);

/** @throws ProxyError if the body is too large to hold, too slow or of no use, the budget is used up, or a limit refuses it */
export async function readBody(request: Request, rules: BodyRules, deps: ReadBodyDeps): Promise<ReceivedBody> {
  const { takesJson, refers } = rules.endpoint;
  const encodings = encodingsOf(request.headers.get("content-encoding") ?? "");
  const isEncoded = encodings.length > 0;
  const isPost = request.method === "POST";
  const mustBeObject = isPost && takesJson && rules.mustBeReadable;
  const type = request.headers.get("content-type") ?? "";
  const isForm = /^\s*multipart\//i.test(type);
  const length = isEncoded ? declaredLength(request) : undefined;
  if (mustBeObject && isForm) throw new ProxyError("unsupported_body");
  if (isEncoded && rules.mustBeReadable && !mustBeObject && length !== 0) {
    throw new ProxyError("unsupported_body", notEncoded);
  }
  if (isPost && isForm) return readForm(request, type, { ...rules, isEncoded }, deps);
  const saysJson = type === "" || jsonType.test(type);
  if (!isPost || !(takesJson || refers || saysJson)) return { ...noBody, came: request.body };
  const readsEncoded = isEncoded && (takesJson || (refers && saysJson));
  // It would only unpack to more.
  if (readsEncoded && !mustBeObject && !refers && (length ?? 0) > deps.maxBytes)
    return { ...noBody, came: request.body };

  // Elsewhere a body of another type is a file, such as a film.
  const isHeld = mustBeObject || saysJson || readsEncoded;
  const came = isHeld ? await holdWhole(request, deps) : await holdIfObject(request, takesJson, deps);
  if (!(came instanceof Uint8Array)) return { ...noBody, came };
  const plain = readsEncoded ? await decoded(came, encodings, deps, mustBeObject || refers) : came;
  const mayEdit = takesJson || (saysJson && plain === came);
  return { came, plain, mayEdit, mustBeObject, isEncoded: readsEncoded, formModel: undefined };
}

const notEncoded: ErrorDetails = {
  message: "With this API key, the body of a request to this path must not be compressed.",
  headers: [["accept-encoding", "identity"]],
};

/** `application/json` and the `+json` types (RFC 6839), whatever their parameters. */
export const jsonType = /^\s*[\w.+-]+\/(?:[\w.-]+\+)?json\s*(?:;|$)/i;

/** A form is held where it must name a model that the key may use, else read until its model is known. */
async function readForm(
  request: Request,
  type: string,
  { checksForms, readsForms, isEncoded }: Pick<BodyRules, "checksForms" | "readsForms"> & { isEncoded: boolean },
  deps: ReadBodyDeps,
): Promise<ReceivedBody> {
  if (checksForms) {
    const came = await holdWhole(request, deps);
    return { ...noBody, came, formModel: modelOfForm(type, came) };
  }
  if (!readsForms || isEncoded || request.body === null) return { ...noBody, came: request.body };
  const { body, model } = await follow(request, undefined, deps, (reader, next) =>
    readFormModel(type, reader, async () => {
      const chunk = await next();
      if (chunk !== undefined) deps.held.arrived(chunk.length);
      return chunk;
    }),
  );
  return { ...noBody, came: body, formModel: model };
}

/**
 * Many backends ignore the encoding, so what is plain JSON all the same must reach all of them as that.
 * @param isRequired it is refused if it cannot be decoded, or is too large then
 * @returns undefined if it cannot be
 */
async function decoded(
  came: Bytes,
  encodings: readonly string[],
  deps: ReadBodyDeps,
  isRequired: boolean,
): Promise<Bytes | undefined> {
  const root = createSlot();
  const isPlain =
    came.length === 0 ||
    ((await runByLength(readJsonInSteps(came, root), came.length, deps.party)) && root.kind === "object");
  if (isPlain) return came;
  try {
    return await decode(came, encodings, deps);
  } catch (error) {
    const code = error instanceof ProxyError ? error.code : undefined;
    if (isRequired || (code !== "unsupported_body" && code !== "body_too_large")) throw error;
    return undefined;
  }
}

async function decode(encoded: Bytes, encodings: readonly string[], deps: ReadBodyDeps): Promise<Bytes> {
  if (!areKnown(encodings)) throw new ProxyError("unsupported_body");
  await deps.askLimits("decoding");
  let plain = encoded;
  // One by one, so that none of them unpacks to more than a body may have. The last one that was applied comes first.
  for (const encoding of encodings.toReversed()) {
    const reader = createStrictDecodedStream(plain, encoding).getReader() as Reader;
    try {
      const next: NextChunk = async () => (await reader.read()).value;
      plain = await gatherAll(next, createGathered(undefined, "take", deps));
    } catch (error) {
      void reader.cancel().catch(() => {});
      throw error instanceof ProxyError ? error : new ProxyError("unsupported_body");
    }
  }
  return plain;
}

async function holdWhole(request: Request, deps: ReadBodyDeps): Promise<Bytes> {
  const { held, maxBytes, askLimits } = deps;
  const length = declaredLength(request);
  if (length !== undefined && length > maxBytes) throw new ProxyError("body_too_large");
  if (length === undefined || length > shortBytes)
    return follow(request, length, deps, (_, next) => gatherAll(next, createGathered(length, "arrived", deps)));
  if (length === 0) return request.bytes();
  if (length > headBytes) await askLimits("wait");
  const { promise, resolve, reject } = Promise.withResolvers<Bytes>();
  held.begin(length, reject);
  held.arrived(length);
  request.bytes().then((bytes) => {
    held.release(length);
    resolve(bytes);
  }, reject);
  return promise;
}

/**
 * Holds a body whose first byte after blanks begins a JSON object, or is a sign of UTF-16. `curl -d '{…}'` sends
 * `application/x-www-form-urlencoded`, and llama.cpp and Ollama read it as JSON all the same.
 * @param readsUtf16 not where any other byte may begin a file
 */
async function holdIfObject(request: Request, readsUtf16: boolean, deps: ReadBodyDeps): Promise<ReceivedBody["came"]> {
  if (request.body === null) return null;
  const gathered = createGathered(undefined, "arrived", deps);
  return follow(request, undefined, deps, async (reader, next) => {
    for (;;) {
      const chunk = await next();
      if (chunk === undefined) return gathered.bytes();
      const first = findNotBlank(chunk);
      const mayBeObject = first === undefined || first === openBrace || (readsUtf16 && signsOfUtf16.has(first));
      if (!mayBeObject) {
        const blanks = gathered.bytes();
        // An empty chunk would be the end of a chunked body.
        return resumedStream(blanks.length === 0 ? [chunk] : [blanks, chunk], reader);
      }
      await gathered.add(chunk);
      if (first !== undefined) return gatherAll(next, gathered);
    }
  });
}

const openBrace = 0x7b;
/** The zero of an ASCII character, and the byte order mark. */
const signsOfUtf16: ReadonlySet<number> = new Set([0x00, 0xfe, 0xff]);

function declaredLength(request: Request): number | undefined {
  const declared = request.headers.get("content-length");
  if (declared !== null) return Number(declared);
  // Only here: the getter makes a stream of the body, and reading its bytes then costs more.
  return request.body === null ? 0 : undefined;
}

type Reader = ReadableStreamDefaultReader<Bytes>;
type NextChunk = () => Promise<Bytes | undefined>;

/** Reads a body in parts while it is fast enough. @param length undefined: the budget is not taken ahead of them */
async function follow<Read>(
  request: Request,
  length: number | undefined,
  deps: ReadBodyDeps,
  read: (reader: Reader, next: NextChunk) => Promise<Read>,
): Promise<Read> {
  const { held, askLimits } = deps;
  if ((declaredLength(request) ?? Infinity) > headBytes) await askLimits("wait");
  let ended: ProxyError | undefined;
  held.begin(length, (reason) => {
    ended = reason;
    void reader.cancel().catch(() => {});
  });
  const reader: Reader = (request.body ?? new Blob().stream()).getReader();
  try {
    return await read(reader, async () => {
      const { value } = await reader.read();
      if (ended !== undefined) throw ended;
      return value;
    });
  } finally {
    held.release(held.arrivedBytes);
  }
}

/**
 * One buffer, into which a body is copied as it arrives: never much at once, and with no memory for each chunk. The buffer
 * may be larger than the body; memory that is not written to costs nothing. A body that has arrived whole is one chunk, and
 * not copied.
 * @param length undefined if it was not declared
 * @param takes what takes the budget
 */
function createGathered(
  length: number | undefined,
  takes: "arrived" | "take",
  { held, maxBytes, waitForTurn, party }: ReadBodyDeps,
) {
  let buffer = unwritten(0);
  let received = 0;
  let portionEnd = portionBytes;
  return {
    /** @returns a promise if others should have their turn: a fast sender would keep the event loop for all of the body */
    add(chunk: Bytes): Promise<void> | undefined {
      const end = received + chunk.length;
      if (end > (length ?? maxBytes)) throw new ProxyError("body_too_large");
      held[takes](chunk.length);
      if (chunk.length === length) {
        buffer = chunk;
      } else {
        if (end > buffer.length) {
          const larger = unwritten(length ?? (end > portionBytes ? maxBytes : Math.max(end, 2 * buffer.length)));
          larger.set(buffer.subarray(0, received));
          buffer = larger;
        }
        buffer.set(chunk, received);
      }
      received = end;
      if (received < portionEnd) return undefined;
      portionEnd = received + portionBytes;
      return waitForTurn(party);
    },
    isWhole: (): boolean => received === length,
    bytes: (): Bytes => partOf(buffer, 0, received),
  };
}

const unwritten = (length: number): Bytes => new Uint8Array(Buffer.allocUnsafeSlow(length).buffer);

async function gatherAll(next: NextChunk, gathered: ReturnType<typeof createGathered>): Promise<Bytes> {
  for (;;) {
    const chunk = await next();
    if (chunk === undefined) return gathered.bytes();
    await gathered.add(chunk);
    if (gathered.isWhole()) return gathered.bytes();
  }
}

/**
 * `fetch` copies a body of bytes before it returns: 40 ms for 64 MiB (Bun 1.4.5). Remove the stream when it does not. A stream
 * costs more than the copies up to here, and a connection of its own.
 */
const maxWholeBytes = 2 * 1024 * 1024;
const maxChunkBytes = 128 * 1024;

/** A shorter one is joined sooner than a Blob is made. */
const maxJoinedBytes = 32 * 1024;

/**
 * A held body as it is sent, once: joins the pieces of a short one; of a long one, makes a Blob, which `fetch` does not copy
 * once more, or a stream.
 */
export function outgoingBodyOf(pieces: readonly Bytes[]): {
  body: Exclude<UpstreamRequest["body"], null>;
  length: number;
} {
  let length = 0;
  for (const piece of pieces) length += piece.length;
  if (length > maxWholeBytes) return { body: streamOf(pieces), length };
  const [only] = pieces;
  if (pieces.length === 1 && only !== undefined) return { body: only, length };
  return { body: length > maxJoinedBytes ? new Blob([...pieces]) : Buffer.concat(pieces, length), length };
}

function streamOf(pieces: readonly Bytes[]): ReadableStream<Bytes> {
  const chunks = chunksOf(pieces);
  return new ReadableStream(
    {
      pull(controller) {
        const { value, done } = chunks.next();
        if (done === true) controller.close();
        else controller.enqueue(value);
      },
    },
    { highWaterMark: 0 },
  );
}

function* chunksOf(pieces: readonly Bytes[]): Generator<Bytes, void> {
  for (const piece of pieces) {
    for (let at = 0; at < piece.length; at += maxChunkBytes) yield piece.subarray(at, at + maxChunkBytes);
  }
}
