// What a response passes on its way to the client. It knows neither request nor backend.
//
//   chunk -> events (`events.ts`) -> reader of usage, filter, hold (`passage.ts`) -> meter -> client
//
// A meter begins with the client's first bytes, after which the status cannot change; flows; and finishes by the
// upstream's end (`flush`), the client's leaving (`cancel`) or `abort`, whichever comes first, through `finishOnce`.
// - The next chunk waits if the usage of compressed ones cannot be read as fast.
// - No client sees the end of a response before its usage is committed: the terminal event waits for `commit`, and the
//   end of the stream for `finish`.
// - After `fail`, nothing is sent but the terminal event whose usage is already being committed.
// - A process that is killed loses what it had not committed, and no client has seen the end of that.
//
// Removed: five machines that each looked for the end of an event.

import type { Usage } from "../../domain/usage.ts";
import { beginsWithMark, type Position } from "./events.ts";
import type { Passage } from "./passage.ts";

/** What is sent in silence. */
export interface Heartbeats {
  /** A text that the first event of the API has; the empty one if it does not matter whether that has passed. */
  begins: string;
  /** Until it has passed. */
  before: { heartbeat: string };
  after: { heartbeat: string };
}

export interface MeterOptions {
  passage: Passage;
  heartbeats: Heartbeats;
  /** After how much silence a heartbeat is sent; 0: never. Only for a plain event stream. */
  keepaliveMs: number;
  /** How long the client has been without a byte. */
  silentMs?: number;
  /** Commits the usage seen so far. The terminal event waits for the promise. */
  commit: (usage: Usage) => Promise<void>;
  /**
   * Called exactly once, with the usage seen: at the end (only then is `cause` undefined), when the client leaves (with
   * the reason its stream was cancelled with), or when it is aborted (with that reason). The client sees no end
   * before the promise resolves.
   */
  finish: (usage: Usage, cause: unknown) => Promise<void>;
}

export interface Meter {
  readonly readable: ReadableStream<Uint8Array>;
  readonly writable: WritableStream<Uint8Array>;
  /** Resolves with the first bytes for the client, or at the end of an empty body; rejects if it is aborted before. */
  readonly started: Promise<void>;
  /** Whether the client got anything, a heartbeat included. */
  hasSent(): boolean;
  /** Whether the first event of the API has passed. */
  hasBegun(): boolean;
  /** Whether the client has taken all that it was sent. */
  isTaken(): boolean;
  /**
   * Does at once what a write to `writable` does later, for a client that has taken all, as nearly all have: that saves a
   * twelfth of what a frame costs.
   * @returns a promise if the next chunk should wait
   */
  push(chunk: Uint8Array): Promise<void> | undefined;
  /**
   * Sends what still waits but an unfinished event, and `frame` as an event of its own. Nothing is sent afterwards, but a
   * terminal event whose usage is being committed: then the promise waits for it, and no frame is sent.
   * The caller aborts next, a macrotask later: Bun 1.4.5 drops what was enqueued right before an error.
   */
  fail(frame: Uint8Array | undefined): Promise<void>;
  /**
   * Finishes and breaks the stream, even while the client takes nothing: aborting the writable would wait for it.
   * @param isFinal it ends cleanly, if the client has taken all
   */
  abort(reason: unknown, isFinal?: boolean): Promise<void>;
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

/** Passes a response's bytes on, and finishes once with their usage, however the response ends. */
export function createMeter(options: MeterOptions): Meter {
  const { passage, heartbeats, keepaliveMs, silentMs, commit, finish } = options;
  const started = Promise.withResolvers<void>();
  // The streams report a failure to whoever does not wait for the start.
  started.promise.catch(() => {});
  const output = createMeterOutput(passage.position, started.resolve);
  const { hasSent, isTaken } = output;
  const keepalive = keepaliveMs > 0 ? startKeepaliveTimer(keepaliveMs, beat, silentMs) : undefined;
  let upstreamBegan = false;
  let begun = heartbeats.begins === "";
  const hasBegun = (): boolean => begun;
  /** Commits and sends the terminal event. Once it is sent, the response is whole for the client. */
  let terminalSent: Promise<void> | undefined;
  let failed = false;
  let finished: Promise<void> | undefined;

  function send(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    keepalive?.restart();
    output.send(upstreamBegan || !hasSent() ? bytes : withoutByteOrderMark(bytes));
    upstreamBegan = true;
    begun ||= Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).includes(heartbeats.begins);
  }

  /** Never inside an event whose end has not come. */
  function beat(): void {
    const { heartbeat } = begun ? heartbeats.after : heartbeats.before;
    if (isTaken() && passage.position() === "between events") output.send(utf8.encode(heartbeat));
  }

  const sendOnceCommitted = (terminal: Uint8Array): Promise<void> => commit(passage.seen()).then(() => send(terminal));

  /** Bun 1.4.5 ends a stream through either `flush` or `cancel`; a count does not depend on that. */
  const finishOnce = (cause: unknown): Promise<void> => (finished ??= finishWith(cause));

  async function finishWith(cause: unknown): Promise<void> {
    keepalive?.stop();
    await finish(await passage.end(), cause);
    if (cause === undefined || hasSent()) started.resolve();
    else started.reject(cause);
  }

  function push(chunk: Uint8Array): Promise<void> | undefined {
    if (failed) return undefined;
    send(passage.push(chunk));
    const terminal = passage.takeEnd();
    return terminal === undefined ? passage.backlog() : (terminalSent = sendOnceCommitted(terminal));
  }

  const transformer: MeterTransformer = {
    start: output.attach,
    transform: push,
    async flush() {
      await finishOnce(undefined);
      if (!failed) send(passage.rest());
    },
    cancel: (reason) => finishOnce(reason ?? new DOMException("The client cancelled the stream", "AbortError")),
  };
  const { readable, writable } = new TransformStream(transformer, oneChunk, oneChunk);

  async function fail(frame: Uint8Array | undefined): Promise<void> {
    if (failed || finished !== undefined) return;
    failed = true;
    keepalive?.stop();
    send(passage.rest());
    if (frame !== undefined && terminalSent === undefined && hasSent()) output.sendEvent(frame);
    // It fails if the client leaves meanwhile.
    await terminalSent?.catch(() => {});
  }

  async function abort(reason: unknown, isFinal = false): Promise<void> {
    await finishOnce(reason);
    output.stop(reason, isFinal);
  }
  return { readable, writable, started: started.promise, hasSent, hasBegun, isTaken, push, fail, abort };
}

/** The mark counts only at the very start; after a comment of ours it would spoil the first line. What is held comes whole. */
export function withoutByteOrderMark(bytes: Uint8Array): Uint8Array {
  return beginsWithMark(bytes) ? bytes.subarray(3) : bytes;
}

const utf8 = new TextEncoder();
const emptyLine: Readonly<Record<Position, Uint8Array>> = {
  "between events": utf8.encode(""),
  "between lines": utf8.encode("\n"),
  "inside a line": utf8.encode("\n\n"),
};

/** The sending side of a meter. @param onFirstBytes called when the first bytes are sent */
function createMeterOutput(position: () => Position, onFirstBytes: () => void) {
  let controller: TransformStreamDefaultController<Uint8Array> | undefined;
  let sent = false;

  function send(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    controller?.enqueue(bytes);
    if (sent) return;
    sent = true;
    onFirstBytes();
  }

  const isTaken = (): boolean => (controller?.desiredSize ?? 0) > 0;

  return {
    attach(given: TransformStreamDefaultController<Uint8Array>) {
      controller = given;
    },
    send,
    /** Sends an event of its own, after ending a line or an event that was left open. */
    sendEvent(event: Uint8Array) {
      send(Buffer.concat([emptyLine[position()], event]));
    },
    hasSent: () => sent,
    isTaken,
    /**
     * Breaks the stream on both sides, and drops what the client has not taken.
     * @param isFinal it ends cleanly for a client that takes what it is sent
     */
    stop(reason: unknown, isFinal: boolean) {
      if (isFinal && isTaken()) controller?.terminate();
      else controller?.error(reason);
    },
  };
}

interface KeepaliveTimer {
  /** A byte passed: the silence begins anew. */
  restart(): void;
  stop(): void;
}

/**
 * Calls back after `silenceMs` without a restart, and again after each further such silence. A restart only notes the
 * time; the one timer finds out when it fires whether it has to wait longer.
 * @param silentMs how much of the first silence has passed
 */
export function startKeepaliveTimer(silenceMs: number, onSilence: () => void, silentMs = 0): KeepaliveTimer {
  let silentSince = performance.now() - silentMs;
  let timer = setTimeout(check, Math.max(0, silenceMs - silentMs));

  function check(): void {
    const remainingMs = silentSince + silenceMs - performance.now();
    // Set before the callback, which may stop it.
    timer = setTimeout(check, remainingMs > 0 ? remainingMs : silenceMs);
    if (remainingMs > 0) return;
    silentSince = performance.now();
    onSilence();
  }

  return {
    restart() {
      silentSince = performance.now();
    },
    stop() {
      clearTimeout(timer);
    },
  };
}
