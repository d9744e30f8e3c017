import { ProxyError } from "../errors.ts";
import type { Party } from "../json/read.ts";
import type { RequestHeaderOptions } from "../headers.ts";
import { type ModelNames, resolveModel } from "../rewrite/model-names.ts";
import { type ClientContext, type Rewritten, untouched } from "../rewrite/rewrite.ts";
import type { UpstreamRequest } from "../upstream/forward.ts";
import type { Rewriter } from "../rewrite/current-rewriting.ts";
import type { ReadBody, ReceivedBody } from "./hold-or-stream.ts";

export interface RewrittenBody {
  outgoing: OutgoingRequestBody;
  rewritten: Rewritten;
}

export interface OutgoingRequestBody {
  /** Called for each time that it is sent. */
  open: () => UpstreamRequest["body"];
  /** It can be sent more than once. */
  isHeld: boolean;
  /** What its headers tell of it. */
  described: Pick<RequestHeaderOptions, "contentLength" | "isDecoded" | "mustBeObject">;
}

export const hasBody = (body: ReadBody): boolean => body !== null && (!(body instanceof Uint8Array) || body.length > 0);

/** @throws ProxyError if the rules could not read in it what the backend may */
export async function rewriteBody(
  path: string,
  { body, mustBeObject, isDecoded, encoded, formModel, isAside }: ReceivedBody,
  { names, rewrite }: Rewriter,
  client?: ClientContext,
  party?: Party,
): Promise<RewrittenBody> {
  if (!(body instanceof Uint8Array)) {
    return {
      outgoing: {
        open: () => body,
        isHeld: body === null,
        described: { contentLength: undefined, isDecoded, mustBeObject },
      },
      rewritten: { ...untouched, ...targetOf(formModel, names) },
    };
  }
  const found = await rewrite(path, body, client, party);
  if ("refused" in found) throw new ProxyError("invalid_json");
  const rewritten = isAside ? { ...untouched, ...targetOf(undefined, names), isStored: found.isStored } : found;
  if (mustBeObject && !rewritten.isObject && hasBody(encoded ?? body)) throw new ProxyError("unsupported_body");
  const outgoing = outgoingBodyOf(rewritten.pieces ?? [encoded ?? body]);
  const isAsItCame = rewritten.pieces === undefined && encoded !== undefined;
  const described = { contentLength: outgoing.length, isDecoded: isDecoded && !isAsItCame, mustBeObject };
  return { outgoing: { open: outgoing.open, isHeld: true, described }, rewritten };
}

/** A form goes where its model is, as it came. */
function targetOf(formModel: string | undefined, names: ModelNames): Pick<Rewritten, "target" | "model"> {
  if (formModel === undefined) return { target: names.unnamed, model: undefined };
  const target = resolveModel(formModel, names);
  return { target, model: { asked: formModel, sent: formModel, name: target.name } };
}

type Bytes = Uint8Array<ArrayBuffer>;

interface OutgoingBody {
  open: () => Bytes | Blob | ReadableStream<Bytes>;
  length: number;
}

/**
 * `fetch` copies a body of bytes before it returns: 40 ms for 64 MiB (Bun 1.4.5). Remove the stream when it does not. A stream
 * costs more than the copies up to here, and a connection of its own.
 */
const maxWholeBytes = 2 * 1024 * 1024;
const maxChunkBytes = 128 * 1024;

/** A shorter one is joined sooner than a Blob is made. */
const maxJoinedBytes = 32 * 1024;

/** Joins the pieces of a short body; of a long one, makes a Blob, which `fetch` does not copy once more, or a stream. */
export function outgoingBodyOf(pieces: readonly Bytes[]): OutgoingBody {
  let length = 0;
  for (const piece of pieces) length += piece.length;
  if (length > maxWholeBytes) return { open: () => streamOf(pieces), length };
  const [only] = pieces;
  if (pieces.length === 1 && only !== undefined) return { open: () => only, length };
  const whole = length > maxJoinedBytes ? new Blob([...pieces]) : Buffer.concat(pieces, length);
  return { open: () => whole, length };
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
