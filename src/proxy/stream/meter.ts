// What a response passes on its way to the client. It knows neither request nor backend.
//
//   chunk -> events (`events.ts`) -> reader of usage, filter (`passage.ts`), its end held (`held-end.ts`) -> meter -> client
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
  count: {
    /** Commits the usage seen so far. The terminal event waits for the promise. */
    commit(usage: Usage): Promise<void>;
  };
  response: {
    /**
     * Called exactly once, with the usage seen: at the end (only then is `cause` undefined), when the client leaves (with
     * the reason its stream was cancelled with), or when it is aborted (with that reason). The client sees no end
     * before the promise resolves.
     */
    finish(usage: Usage, cause: unknown, hasSent: boolean): Promise<void>;
  };
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
export class Meter {
  readonly #keepalive: ReturnType<typeof startKeepaliveTimer> | undefined;
  #controller: TransformStreamDefaultController<Uint8Array> | undefined;
  readonly readable: ReadableStream<Uint8Array>;
  readonly writable: WritableStream<Uint8Array>;
  readonly #started = Promise.withResolvers<void>();
  /** Resolves with the first bytes for the client, or at the end of an empty body; rejects if it is aborted before. */
  readonly started = this.#started.promise;
  /** Whether the client got anything, a heartbeat included. */
  hasSent = false;
  /** Whether the first event of the API has passed. */
  hasBegun: boolean;
  #upstreamBegan = false;
  /** Commits and sends the terminal event. Once it is sent, the response is whole for the client. */
  #terminalSent: Promise<void> | undefined;
  #failed = false;
  #finished: Promise<void> | undefined;

  constructor(readonly options: MeterOptions) {
    const { heartbeats, keepaliveMs, silentMs } = options;
    this.hasBegun = heartbeats.begins === "";
    // The streams report a failure to whoever does not wait for the start.
    this.started.catch(() => {});
    if (keepaliveMs > 0) this.#keepalive = startKeepaliveTimer(keepaliveMs, () => this.#beat(), silentMs);
    const transformer: MeterTransformer = {
      start: (controller) => void (this.#controller = controller),
      transform: (chunk) => this.push(chunk),
      flush: async () => {
        await this.#finishOnce(undefined);
        if (!this.#failed) this.#send(options.passage.rest());
      },
      cancel: (reason) => this.#finishOnce(reason ?? new DOMException("The client cancelled the stream", "AbortError")),
    };
    ({ readable: this.readable, writable: this.writable } = new TransformStream(transformer, oneChunk, oneChunk));
  }

  /** Whether the client has taken all that it was sent. */
  isTaken(): boolean {
    return (this.#controller?.desiredSize ?? 0) > 0;
  }

  /**
   * Does at once what a write to `writable` does later, for a client that has taken all, as nearly all have: that saves a
   * twelfth of what a frame costs.
   * @returns a promise if the next chunk should wait
   */
  push(chunk: Uint8Array): Promise<void> | undefined {
    if (this.#failed) return undefined;
    const { passage } = this.options;
    this.#send(passage.push(chunk));
    const terminal = passage.held.take();
    return terminal === undefined ? passage.backlog : (this.#terminalSent = this.#sendOnceCommitted(terminal));
  }

  async #sendOnceCommitted(terminal: Uint8Array): Promise<void> {
    await this.options.count.commit(this.options.passage.seen());
    this.#send(terminal);
  }

  #send(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    this.#keepalive?.restart();
    this.#enqueue(this.#upstreamBegan || !this.hasSent ? bytes : withoutByteOrderMark(bytes));
    this.#upstreamBegan = true;
    const { begins } = this.options.heartbeats;
    this.hasBegun ||= Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).includes(begins);
  }

  #enqueue(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    this.#controller?.enqueue(bytes);
    if (this.hasSent) return;
    this.hasSent = true;
    this.#started.resolve();
  }

  /** Never inside an event whose end has not come. */
  #beat(): void {
    const { heartbeats, passage } = this.options;
    const { heartbeat } = this.hasBegun ? heartbeats.after : heartbeats.before;
    if (this.isTaken() && passage.position() === "between events") this.#enqueue(utf8.encode(heartbeat));
  }

  /** Bun 1.4.5 ends a stream through either `flush` or `cancel`; a count does not depend on that. */
  #finishOnce(cause: unknown): Promise<void> {
    return (this.#finished ??= this.#finishWith(cause));
  }

  async #finishWith(cause: unknown): Promise<void> {
    this.#keepalive?.stop();
    await this.options.response.finish(await this.options.passage.end(), cause, this.hasSent);
    if (cause === undefined || this.hasSent) this.#started.resolve();
    else this.#started.reject(cause);
  }

  /**
   * Sends what still waits but an unfinished event, and `frame` as an event of its own, after ending a line or an event
   * that was left open. Nothing is sent afterwards, but a terminal event whose usage is being committed: then the promise
   * waits for it, and no frame is sent.
   * The caller aborts next, a macrotask later: Bun 1.4.5 drops what was enqueued right before an error.
   */
  async fail(frame: Uint8Array | undefined): Promise<void> {
    if (this.#failed || this.#finished !== undefined) return;
    this.#failed = true;
    this.#keepalive?.stop();
    const { passage } = this.options;
    this.#send(passage.rest());
    if (frame !== undefined && this.#terminalSent === undefined && this.hasSent) {
      this.#enqueue(Buffer.concat([emptyLine[passage.position()], frame]));
    }
    // It fails if the client leaves meanwhile.
    await this.#terminalSent?.catch(() => {});
  }

  /**
   * Finishes and breaks the stream on both sides, even while the client takes nothing: aborting the writable would wait
   * for it. What the client has not taken is dropped.
   * @param isFinal it ends cleanly, if the client has taken all
   */
  async abort(reason: unknown, isFinal = false): Promise<void> {
    await this.#finishOnce(reason);
    if (isFinal && this.isTaken()) this.#controller?.terminate();
    else this.#controller?.error(reason);
  }
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

/**
 * Calls back after `silenceMs` without a restart, and again after each further such silence. A restart only notes the
 * time; the one timer finds out when it fires whether it has to wait longer.
 * @param silentMs how much of the first silence has passed
 */
function startKeepaliveTimer(silenceMs: number, onSilence: () => void, silentMs = 0) {
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
    /** A byte passed: the silence begins anew. */
    restart(): void {
      silentSince = performance.now();
    },
    stop(): void {
      clearTimeout(timer);
    },
  };
}
