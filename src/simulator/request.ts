import type { RequestHead } from "./request-parser.ts";
import type { EndingKind } from "./recording.ts";

export interface Ending {
  how: EndingKind;
  /** As `performance.now()` tells. */
  at: number;
}

/** A request as it came over the wire. Times are those of `performance.now()`. */
export interface SimulatedRequest extends RequestHead {
  /** Counted from 1; requests with the same number came over the same connection. */
  connection: number;
  /** The target without its query. */
  path: string;
  /** The first header of that name, any case. */
  header(name: string): string | undefined;
  /** As much of the body as was kept. */
  body(): Uint8Array;
  /** undefined where the body is not JSON. */
  json(): unknown;
  bodySha256(): string;
  bodyBytes: number;
  receivedAt: number;
  /** Output tokens that went out so far. */
  tokensSent: number;
  /** Whether the body has come whole. */
  isComplete: boolean;
  ended: Promise<Ending>;
}

/** The simulator's own side of a request. */
export interface IncomingRequest extends SimulatedRequest {
  receive(bytes: Uint8Array): void;
  end(ending: Ending): void;
}

/** @param keepBytes how much of the body is held; the rest is only measured and hashed */
export function createRequest(head: RequestHead, connection: number, keepBytes: number): IncomingRequest {
  const kept: Uint8Array[] = [];
  let whole: Buffer | undefined;
  let hasher: Bun.CryptoHasher | undefined;
  const { promise: ended, resolve: end } = Promise.withResolvers<Ending>();

  const body = (): Buffer => (whole ??= Buffer.concat(kept));
  const request: IncomingRequest = {
    ...head,
    connection,
    path: head.target.split("?", 1)[0] ?? "",
    header: (name) => head.headers.find(([given]) => given.toLowerCase() === name.toLowerCase())?.[1],
    body,
    json() {
      try {
        return JSON.parse(body().toString());
      } catch {
        return undefined;
      }
    },
    bodySha256: () => (hasher ?? hashOf(kept)).copy().digest("hex"),
    bodyBytes: 0,
    receivedAt: performance.now(),
    tokensSent: 0,
    isComplete: false,
    ended,
    end,
    receive(bytes) {
      request.bodyBytes += bytes.length;
      if (request.bodyBytes <= keepBytes) {
        whole = undefined;
        kept.push(bytes);
        return;
      }
      hasher ??= hashOf(kept);
      hasher.update(bytes);
    },
  };
  return request;
}

function hashOf(parts: readonly Uint8Array[]): Bun.CryptoHasher {
  const hasher = new Bun.CryptoHasher("sha256");
  for (const part of parts) hasher.update(part);
  return hasher;
}
