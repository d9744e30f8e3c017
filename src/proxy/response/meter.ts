import { createMeterOutput } from "./meter-output.ts";
import { startKeepaliveTimer } from "./keepalive-timer.ts";
import type { StreamUsageFilter } from "../usage/stream-filter.ts";
import type { UsageReader } from "../usage/response-usage.ts";
import type { Usage } from "../../domain.ts";

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

/** Hands an answer's bytes on first, looks at them second, and settles it once, however it ends. */
export function createMeter({ reader, filter, keepaliveMs, settle }: MeterOptions): Meter {
  const output = createMeterOutput();
  const keepalive = keepaliveMs > 0 ? startKeepaliveTimer(keepaliveMs, output.sendComment) : undefined;
  let upstreamBegan = false;
  let failed = false;
  let settled: Promise<void> | undefined;

  async function settleNow(cause: unknown): Promise<void> {
    keepalive?.stop();
    await settle(await reader.end(), cause);
  }

  /** Bun 1.4.5 ends a stream through `flush` or `cancel`, never both; a count is not staked on that. */
  function settleOnce(cause: unknown): Promise<void> {
    settled ??= settleNow(cause);
    return settled;
  }

  const transformer: MeterTransformer = {
    start: output.attach,
    transform(chunk) {
      if (failed) return undefined;
      keepalive?.restart();
      const bytes = output.hasSent() && !upstreamBegan ? withoutByteOrderMark(chunk) : chunk;
      upstreamBegan = true;
      output.send(filter === undefined ? bytes : filter.push(bytes));
      return reader.push(chunk);
    },
    flush() {
      if (!failed && filter !== undefined) output.send(filter.end());
      return settleOnce(undefined);
    },
    cancel: (reason) => settleOnce(reason ?? new DOMException("The client cancelled the stream", "AbortError")),
  };
  const { readable, writable } = new TransformStream(transformer, oneChunk, oneChunk);

  return {
    readable,
    writable,
    get handedOn() {
      return output.hasSent();
    },
    fail(frame) {
      if (failed || settled !== undefined) return;
      failed = true;
      keepalive?.stop();
      if (filter !== undefined) output.send(filter.end());
      if (frame !== undefined) output.sendEvent(frame);
    },
  };
}

/** The mark is one at the very start only: behind a comment of ours it would spoil the first line. */
function withoutByteOrderMark(chunk: Uint8Array): Uint8Array {
  return chunk[0] === 0xef && chunk[1] === 0xbb && chunk[2] === 0xbf ? chunk.subarray(3) : chunk;
}
