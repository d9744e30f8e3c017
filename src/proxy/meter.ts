import { createEventBoundary, type Place } from "./event-boundary.ts";
import { startSilenceTimer } from "./silence-timer.ts";
import type { StreamUsageFilter } from "./stream-usage.ts";
import type { UsageReader } from "./usage-reader.ts";
import type { Usage } from "./usage.ts";

export interface MeterOptions {
  reader: UsageReader;
  /** Takes out of the stream what only the proxy asked for. */
  filter?: StreamUsageFilter | undefined;
  /** After how much silence a comment is sent; 0: never. Only for a plain event stream. */
  keepaliveMs: number;
  /**
   * Called exactly once, with the usage seen: at the end (`cause` is undefined then, and only then), when the client
   * leaves (the reason its stream was cancelled with), or when the writable is aborted (its reason). The client sees no
   * end before the promise resolves.
   */
  settle: (usage: Usage, cause: unknown) => Promise<void>;
}

export interface Meter {
  readonly readable: ReadableStream<Uint8Array>;
  readonly writable: WritableStream<Uint8Array>;
  /** Whether any byte was handed on, a keepalive's included: the response head is then on its way. */
  readonly handedOn: boolean;
  /**
   * Sends what the filter still holds, and `frame` as an event of its own, after whatever ends a line or an event that
   * was left open. Nothing is sent afterwards. Who calls it aborts the writable next, a macrotask later: Bun 1.4.5
   * drops what was enqueued right before an error.
   */
  fail(frame: Uint8Array | undefined): void;
}

/** TypeScript's lib lacks `cancel`, which the standard calls for a cancelled readable and an aborted writable. */
interface MeterTransformer extends Transformer<Uint8Array, Uint8Array> {
  cancel(reason: unknown): Promise<void>;
}

/**
 * One chunk on each side: with less, nothing tells a client that reads from one that does not (`desiredSize` is never
 * above 0); with more, a client that stalls costs more memory.
 */
const oneChunk: QueuingStrategy<Uint8Array> = { highWaterMark: 1 };

const utf8 = new TextEncoder();
const comment: Readonly<Record<Place, Uint8Array | undefined>> = {
  "between events": utf8.encode(": keepalive\n\n"),
  "between lines": utf8.encode(": keepalive\n"),
  "inside a line": undefined,
};
const ending: Readonly<Record<Place, Uint8Array>> = {
  "between events": utf8.encode(""),
  "between lines": utf8.encode("\n"),
  "inside a line": utf8.encode("\n\n"),
};

/** Hands an answer's bytes on first, looks at them second, and settles it once, however it ends. */
export function createMeter({ reader, filter, keepaliveMs, settle }: MeterOptions): Meter {
  const boundary = createEventBoundary();
  let controller: TransformStreamDefaultController<Uint8Array> | undefined;
  let handedOn = false;
  let failed = false;
  let upstreamBegan = false;
  let settled: Promise<void> | undefined;

  const keepalive = keepaliveMs > 0 ? startSilenceTimer(keepaliveMs, sendComment) : undefined;
  const transformer: MeterTransformer = {
    start(started) {
      controller = started;
    },
    transform(chunk) {
      if (failed) return undefined;
      keepalive?.restart();
      handOn(filter === undefined ? withoutLateMark(chunk) : filter.push(withoutLateMark(chunk)));
      return reader.push(chunk);
    },
    flush() {
      if (!failed && filter !== undefined) handOn(filter.end());
      return settleOnce(undefined);
    },
    cancel: (reason) => settleOnce(reason ?? new DOMException("The client cancelled the stream", "AbortError")),
  };
  const { readable, writable } = new TransformStream(transformer, oneChunk, oneChunk);

  function handOn(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    handedOn = true;
    boundary.passed(bytes);
    controller?.enqueue(bytes);
  }

  /** A byte order mark is one at the very start only: behind a comment it would spoil the first line. */
  function withoutLateMark(chunk: Uint8Array): Uint8Array {
    const late = handedOn && !upstreamBegan;
    upstreamBegan = true;
    return late && chunk[0] === 0xef && chunk[1] === 0xbb && chunk[2] === 0xbf ? chunk.subarray(3) : chunk;
  }

  function sendComment(): void {
    const bytes = comment[boundary.place()];
    const clientReads = (controller?.desiredSize ?? 0) > 0;
    if (bytes !== undefined && clientReads) handOn(bytes);
  }

  function settleOnce(cause: unknown): Promise<void> {
    settled ??= endReading().then((usage) => settle(usage, cause));
    return settled;
  }

  async function endReading(): Promise<Usage> {
    keepalive?.stop();
    return reader.end();
  }

  return {
    readable,
    writable,
    get handedOn() {
      return handedOn;
    },
    fail(frame) {
      if (failed || settled !== undefined) return;
      failed = true;
      keepalive?.stop();
      if (filter !== undefined) handOn(filter.end());
      if (frame !== undefined) handOn(Buffer.concat([ending[boundary.place()], frame]));
    },
  };
}
