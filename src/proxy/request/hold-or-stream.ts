import { type ErrorDetails, ProxyError } from "../errors.ts";
import { findNotBlank, partOf } from "../json/bytes.ts";
import { type Party, readJsonInSteps, runByLength } from "../json/read.ts";
import { createSlot } from "../json/slots.ts";
import { resumedStream } from "../upstream/resumed-stream.ts";
import { areKnown, createStrictDecodedStream, encodingsOf } from "../usage/decompress.ts";
import { modelOfForm, readFormModel } from "./form-model.ts";
import type { HeldShare } from "./held-bytes.ts";

/** Bodies up to this length are read in one go: a stream costs a tenth of all that a request of 100 kB costs. */
const shortBytes = 512 * 1024;
/** Bodies up to this length are taken to have come with their head. */
const headBytes = 64 * 1024;

/**
 * A long body is received in portions of this size, each of which takes 1 to 2 ms. The runtime reads no further than we do.
 * The buffer of one of unknown length doubles up to here, and then gets the largest size allowed.
 */
const portionBytes = 1024 * 1024;

type Bytes = Uint8Array<ArrayBuffer>;

/** The whole body if it may need a rewrite, else the stream as it arrives, or null. */
export type ReadBody = Bytes | ReadableStream<Bytes> | null;

export interface ReceivedBody {
  /** What the rules read. */
  body: ReadBody;
  /** It is refused unless it is empty or a JSON object. */
  mustBeObject: boolean;
  /** It is in none of the encodings that the client named, or no longer. */
  isDecoded: boolean;
  /** What it was decoded from, which is sent in its place if nothing is edited; undefined if it was not decoded. */
  encoded: Bytes | undefined;
  /** The model that a form names; undefined for any other body. */
  formModel: string | undefined;
  /** It is read for what it names only, and forwarded as it came. */
  isAside: boolean;
}

export interface BodyRules {
  /** The path's bodies are JSON whatever their content type says. */
  takesJson: boolean;
  /** The key may only send what its limits and models can be applied to. */
  mustBeReadable: boolean;
  /** Forms are searched for the model that they name. */
  readsForms: boolean;
  /** The key may use some models only: forms are held, and must name one of them. */
  checksForms: boolean;
  /** What the path's bodies name may be another key's. */
  mayRefer: boolean;
}

/** It has not come with its head, and is waited for; it is decoded; whose what it names is, is looked up. */
export type CostOfBody = "wait" | "decoding" | "look-up";

export interface ReadBodyDeps {
  held: HeldShare;
  /** Asks the limits of the key before more is done for a body. */
  askLimits: (before: CostOfBody) => Promise<void>;
  /** The largest body that is held. */
  maxBytes: number;
  /** Resolves when others had their turn. */
  waitForTurn: (party: Party) => Promise<void>;
  /** The key's id. */
  party: Party;
}

/**
 * Holds a body that may need a rewrite, and leaves any other to be streamed.
 * @throws ProxyError if the body is too large to hold, too slow or of no use, the budget is used up, or a limit refuses it
 */
export async function readBody(request: Request, rules: BodyRules, deps: ReadBodyDeps): Promise<ReceivedBody> {
  const { takesJson, mustBeReadable, readsForms, checksForms, mayRefer } = rules;
  const encodings = encodingsNamedBy(request);
  const [isPost, isPlain] = [request.method === "POST", encodings.length === 0];
  if (isPost && takesJson && mustBeReadable) return readObject(request, deps);
  if (mustBeReadable && !isPlain && declaredLength(request) !== 0) throw new ProxyError("unsupported_body", notEncoded);
  if (isPlain && isRewritable(request)) return asItCame(await holdWhole(request, deps));
  const isForm = isMultipart(request);
  if (isPost && isForm && checksForms) return holdForm(request, deps);
  if (isPost && isForm && readsForms && isPlain) return readForm(request, deps);
  const readsEncoded = isPost && mayRefer && !isPlain && (takesJson ? !isForm : isRewritable(request));
  if (readsEncoded) return readObject(request, deps, true);
  if (!takesJson && isRewritable(request)) return asItCame(await holdWhole(request, deps));
  if (!isPost || isForm || !(takesJson || mayRefer)) return asItCame(request.body);
  // Elsewhere such a body is a file, such as a film.
  const body = await holdIfObject(request, takesJson && isPlain, deps);
  if (takesJson || !(body instanceof Uint8Array)) return asItCame(body);
  return { ...asItCame(body), encoded: body, isAside: true };
}

const notEncoded: ErrorDetails = {
  message: "With this API key, the body of a request to this path must not be compressed.",
  headers: [["accept-encoding", "identity"]],
};

const asItCame = (body: ReadBody): ReceivedBody => ({
  body,
  mustBeObject: false,
  isDecoded: false,
  encoded: undefined,
  formModel: undefined,
  isAside: false,
});

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

const isMultipart = ({ headers }: Request): boolean => /^\s*multipart\//i.test(headers.get("content-type") ?? "");

function encodingsNamedBy({ headers }: Request): readonly string[] {
  const named = headers.get("content-encoding");
  return named === null ? [] : encodingsOf(named);
}

async function readForm(request: Request, deps: ReadBodyDeps): Promise<ReceivedBody> {
  if (request.body === null) return asItCame(null);
  const { body, model } = await follow(request, undefined, deps, (reader, next) =>
    readFormModel(request.headers.get("content-type") ?? "", reader, async () => {
      const chunk = await next();
      if (chunk !== undefined) deps.held.arrived(chunk.length);
      return chunk;
    }),
  );
  return { ...asItCame(body), formModel: model };
}

/** Holds a form until its end is read. It goes on as a stream, so that its bytes are not estimated as a prompt's text. */
async function holdForm(request: Request, deps: ReadBodyDeps): Promise<ReceivedBody> {
  const form = await holdWhole(request, deps);
  const formModel = modelOfForm(request.headers.get("content-type") ?? "", form);
  return { ...asItCame(new Blob([form]).stream()), formModel };
}

/** Holds any body, and decodes it. @param isAside it is forwarded as it came, unless it is plain JSON */
async function readObject(request: Request, deps: ReadBodyDeps, isAside = false): Promise<ReceivedBody> {
  if (isMultipart(request)) throw new ProxyError("unsupported_body");
  const body = await holdWhole(request, deps);
  const encodings = encodingsNamedBy(request);
  const isDecoded = encodings.length > 0;
  const plain = isAside ? asItCame(body) : { ...asItCame(body), mustBeObject: true, isDecoded };
  // Many backends ignore the encoding, so what is plain JSON all the same must reach all of them as that.
  if (!isDecoded || body.length === 0 || (await isObject(body, deps))) return plain;
  return { ...plain, body: await decode(body, encodings, deps), encoded: body, isAside };
}

async function isObject(bytes: Bytes, { party }: ReadBodyDeps): Promise<boolean> {
  const root = createSlot();
  return (await runByLength(readJsonInSteps(bytes, root), bytes.length, party)) && root.kind === "object";
}

async function decode(encoded: Bytes, encodings: readonly string[], deps: ReadBodyDeps): Promise<Bytes> {
  if (!areKnown(encodings)) throw new ProxyError("unsupported_body");
  await deps.askLimits("decoding");
  let decoded = encoded;
  // One by one, so that none of them unpacks to more than a body may have. The last one that was applied comes first.
  for (const encoding of encodings.toReversed()) {
    const reader = createStrictDecodedStream(decoded, encoding).getReader() as Reader;
    try {
      const next: NextChunk = async () => (await reader.read()).value;
      decoded = await gatherAll(next, createGathered(undefined, deps.held.take, deps));
    } catch (error) {
      void reader.cancel().catch(() => {});
      throw error instanceof ProxyError ? error : new ProxyError("unsupported_body");
    }
  }
  return decoded;
}

async function holdWhole(request: Request, deps: ReadBodyDeps): Promise<Bytes> {
  const { held, maxBytes, askLimits } = deps;
  const length = declaredLength(request);
  if (length !== undefined && length > maxBytes) throw new ProxyError("body_too_large");
  if (length === undefined || length > shortBytes)
    return follow(request, length, deps, (_, next) => gatherAll(next, createGathered(length, held.arrived, deps)));
  if (length === 0) return request.bytes();
  if (length > headBytes) await askLimits("wait");
  const { promise, resolve, reject } = Promise.withResolvers<Bytes>();
  held.begin(length, reject);
  held.arrived(length);
  request.bytes().then((bytes) => {
    held.finish();
    resolve(bytes);
  }, reject);
  return promise;
}

/**
 * Holds a body whose first byte after blanks begins a JSON object, or is a sign of UTF-16. `curl -d '{…}'` sends
 * `application/x-www-form-urlencoded`, and llama.cpp and Ollama read it as JSON all the same.
 * @param readsUtf16 not for an encoded body, which may begin with any byte
 */
async function holdIfObject(request: Request, readsUtf16: boolean, deps: ReadBodyDeps): Promise<ReadBody> {
  if (request.body === null) return null;
  const gathered = createGathered(undefined, deps.held.arrived, deps);
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
    held.finish();
  }
}

/**
 * One buffer, into which a body is copied as it arrives: never much at once, and with no memory for each chunk. The buffer
 * may be larger than the body; memory that is not written to costs nothing. A body that has arrived whole is one chunk, and
 * not copied.
 * @param length undefined if it was not declared
 * @param take takes the budget
 */
function createGathered(
  length: number | undefined,
  take: (bytes: number) => void,
  { maxBytes, waitForTurn, party }: ReadBodyDeps,
) {
  let buffer = unwritten(0);
  let received = 0;
  let portionEnd = portionBytes;
  return {
    /** @returns a promise if others should have their turn: a fast sender would keep the event loop for all of the body */
    add(chunk: Bytes): Promise<void> | undefined {
      const end = received + chunk.length;
      if (end > (length ?? maxBytes)) throw new ProxyError("body_too_large");
      take(chunk.length);
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
