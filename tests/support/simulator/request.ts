import { findHeader } from "../http-parser.ts";
import type { RequestHead } from "./request-parser.ts";

/** "aborted": the client left first. "broken": the simulator cut the connection, as the script demanded. */
export type EndingKind = "finished" | "aborted" | "broken";

export interface Ending {
  how: EndingKind;
  /** From `performance.now()`. */
  at: number;
}

/** A request as received on the wire. Times come from `performance.now()`. */
export interface SimulatedRequest extends RequestHead {
  /** The connection's number, from 1. Requests on one connection share it. */
  connection: number;
  /** The target without its query. */
  path: string;
  /** The first header with that name, ignoring case. */
  header(name: string): string | undefined;
  /** The part of the body that was kept. */
  body(): Uint8Array;
  /** undefined if the body is not JSON. */
  json(): unknown;
  bodySha256(): string;
  bodyBytes: number;
  receivedAt: number;
  /** Output tokens sent so far. */
  tokensSent: number;
  /** Whether the whole body has arrived. */
  isComplete: boolean;
  ended: Promise<Ending>;
}

/** The most of these that ran at once. */
export async function mostAtOnce(requests: readonly SimulatedRequest[]): Promise<number> {
  const times = await Promise.all(
    requests.map(async ({ receivedAt, ended }) => ({ from: receivedAt, to: (await ended).at })),
  );
  return Math.max(...times.map(({ from }) => times.filter((one) => one.from <= from && from < one.to).length));
}

/** The simulator's own side of a request. */
export interface IncomingRequest extends SimulatedRequest {
  receive(bytes: Uint8Array): void;
  end(ending: Ending): void;
}

/** @param keepBytes how many bytes of the body are kept; the rest is only counted and hashed */
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
    header: (name) => findHeader(head.headers, name),
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
