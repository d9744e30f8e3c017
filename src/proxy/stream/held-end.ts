import { isLineEnd, maxHeldEventBytes } from "./events.ts";
import { endsStream } from "./flags.ts";

const nothing = new Uint8Array();

/** What of an event stream may go to its client, and the event that ends it, which waits until its count is committed. */
export class HeldEnd {
  readonly #ready: Uint8Array[] = [];
  #end: Uint8Array[] | undefined;
  #hasEnded = false;
  /** The stream ends with a long event, so that nothing of ours fits in. */
  waitsInLine = false;

  /** Part of a long event, not the last. */
  pass(bytes: Uint8Array): void {
    (this.#end ?? this.#ready).push(bytes);
  }

  event(event: Uint8Array): void {
    const isEnd = !this.#hasEnded && endsStream(event);
    if (isEnd && event.length > maxHeldEventBytes) return this.#endLong(event);
    if (isEnd) this.#begin();
    this.pass(event);
  }

  /** The last bytes of a long event. If that ends the stream, its last line ends wait. */
  lastPiece(bytes: Uint8Array, isEnd: boolean): void {
    if (isEnd && !this.#hasEnded) this.#endLong(bytes);
    else this.pass(bytes);
  }

  /** @returns what may be sent now */
  takeReady(): Uint8Array {
    return this.#ready.length === 1 ? (this.#ready.pop() ?? nothing) : joined(this.#ready.splice(0));
  }

  /** @returns the event that ends the stream and what came with it, once. Nothing waits afterwards */
  take(): Uint8Array | undefined {
    const bytes = this.#end && joined(this.#end);
    this.#end = undefined;
    return bytes;
  }

  #begin(): void {
    this.#hasEnded = true;
    this.#end = [];
  }

  #endLong(bytes: Uint8Array): void {
    let at = bytes.length;
    while (at > 0 && isLineEnd(bytes[at - 1])) at--;
    this.pass(bytes.subarray(0, at));
    this.#begin();
    this.pass(bytes.subarray(at));
    this.waitsInLine = true;
  }
}

/** Without a copy if they stand side by side, as those that came in one chunk do. */
export function joined(pieces: readonly Uint8Array[]): Uint8Array {
  const [first = nothing] = pieces;
  let end = first.byteOffset;
  for (const { buffer, byteOffset, length } of pieces) {
    if (buffer !== first.buffer || byteOffset !== end) return Buffer.concat(pieces);
    end += length;
  }
  return pieces.length < 2 ? first : new Uint8Array(first.buffer, first.byteOffset, end - first.byteOffset);
}
