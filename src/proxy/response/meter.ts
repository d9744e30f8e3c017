import type { Usage } from "../../domain/usage.ts";
import type { UsageReader } from "../usage/response-usage.ts";
import type { StreamUsageFilter } from "../usage/stream-filter.ts";
import type { EventHold } from "./event-hold.ts";
import { startKeepaliveTimer } from "./keepalive-timer.ts";
import { createMeterOutput } from "./meter-output.ts";

export interface MeterOptions {
  reader: UsageReader;
  /** Removes from the stream what only the proxy asked for. */
  filter?: StreamUsageFilter | undefined;
  /** Holds back an unfinished event and the terminal one. Only for a plain event stream. */
  hold?: EventHold | undefined;
  /** After how much silence a comment is sent; 0: never. Only for a plain event stream. */
  keepaliveMs: number;
  /** Commits the usage seen so far. The terminal event waits for the promise. */
  commit: (usage: Usage) => Promise<void>;
  /**
   * Called exactly once, with the usage seen: at the end (only then is `cause` undefined), when the client leaves (with
   * the reason its stream was cancelled with), or when it is aborted (with that reason). The client sees no end
   * before the promise resolves.
   */
  settle: (usage: Usage, cause: unknown) => Promise<void>;
}

export interface Meter {
  readonly readable: ReadableStream<Uint8Array>;
  readonly writable: WritableStream<Uint8Array>;
  /** Resolves with the first bytes for the client, or at the end of an empty body; rejects if it is aborted before. */
  readonly started: Promise<void>;
  /** Whether the client got anything, a keepalive included. */
  hasSent(): boolean;
  /**
   * Sends what the filter still holds, and `frame` as an event of its own. An unfinished event is dropped. Nothing is sent
   * afterwards, but a terminal event whose usage is being committed: then the promise waits for it, and no frame is sent.
   * The caller aborts next, a macrotask later: Bun 1.4.5 drops what was enqueued right before an error.
   */
  fail(frame: Uint8Array | undefined): Promise<void>;
  /** Settles and breaks the stream, even while the client takes nothing: aborting the writable would wait for it. */
  abort(reason: unknown): Promise<void>;
}

/**
 * TypeScript's lib lacks `cancel`, which the standard calls for a cancelled readable and an aborted writable.
 * Remove when `Transformer` has it.
 */
interface MeterTransformer extends Transformer<Uint8Array, Uint8Array> {
  cancel(reason: unknown): Promise<void>;
}

/**
 * One chunk on each side. With less, a client that reads looks like one that does not (`desiredSize` is never above 0);
 * with more, a client that stalls costs more memory.
 */
const oneChunk: QueuingStrategy<Uint8Array> = { highWaterMark: 1 };

/** Passes a response's bytes on first, reads their usage second, and settles once, however the response ends. */
export function createMeter({ reader, filter, hold, keepaliveMs, commit, settle }: MeterOptions): Meter {
  const started = Promise.withResolvers<void>();
  // The streams report a failure to whoever does not wait for the start.
  started.promise.catch(() => {});
  const output = createMeterOutput(started.resolve);
  const keepalive = keepaliveMs > 0 ? startKeepaliveTimer(keepaliveMs, output.sendComment) : undefined;
  let upstreamBegan = false;
  let ending: Promise<void> | undefined; // Once the terminal event is sent, the response is whole for the client.
  let failed = false;

  function send(visible: Uint8Array): void {
    const bytes = hold === undefined ? visible : hold.push(visible);
    if (bytes.length === 0) return;
    keepalive?.restart();
    output.send(bytes);
  }

  async function endAfterCommit(terminal: Uint8Array): Promise<void> {
    await commit(reader.seen());
    output.send(terminal);
  }

  const settlement = createSettlement(async (cause) => {
    keepalive?.stop();
    await settle(await reader.end(), cause);
    if (cause === undefined || output.hasSent()) started.resolve();
    else started.reject(cause);
  });

  const transformer: MeterTransformer = {
    start: output.attach,
    transform(chunk) {
      if (failed) return undefined;
      const bytes = output.hasSent() && !upstreamBegan ? withoutByteOrderMark(chunk) : chunk;
      upstreamBegan = true;
      send(filter === undefined ? bytes : filter.push(bytes));
      const backlog = reader.push(chunk);
      const terminal = hold?.takeTerminal();
      return terminal === undefined ? backlog : (ending = endAfterCommit(terminal));
    },
    async flush() {
      if (!failed && filter !== undefined) send(filter.end());
      const rest = failed ? [] : [hold?.takeTerminal(), hold?.end()];
      await settlement.once(undefined);
      for (const bytes of rest) output.send(bytes ?? nothing);
    },
    cancel: (reason) => settlement.once(reason ?? new DOMException("The client cancelled the stream", "AbortError")),
  };
  const { readable, writable } = new TransformStream(transformer, oneChunk, oneChunk);

  async function fail(frame: Uint8Array | undefined): Promise<void> {
    if (failed || settlement.hasBegun()) return;
    failed = true;
    keepalive?.stop();
    if (filter !== undefined) send(filter.end());
    if (frame !== undefined && ending === undefined && output.hasSent()) output.sendEvent(frame);
    // It fails if the client leaves meanwhile.
    await ending?.catch(() => {});
  }

  async function abort(reason: unknown): Promise<void> {
    await settlement.once(reason);
    output.fail(reason);
  }
  return { readable, writable, started: started.promise, hasSent: output.hasSent, fail, abort };
}

const nothing = new Uint8Array();

/** Bun 1.4.5 ends a stream through either `flush` or `cancel`; a count does not depend on that. */
function createSettlement(settle: (cause: unknown) => Promise<void>) {
  let settled: Promise<void> | undefined;
  return {
    once: (cause: unknown): Promise<void> => (settled ??= settle(cause)),
    hasBegun: (): boolean => settled !== undefined,
  };
}

/** The mark counts only at the very start; after a comment of ours it would spoil the first line. */
function withoutByteOrderMark(chunk: Uint8Array): Uint8Array {
  return chunk[0] === 0xef && chunk[1] === 0xbb && chunk[2] === 0xbf ? chunk.subarray(3) : chunk;
}
