import { isLineEnd, maxHeldEventBytes } from "./events.ts";
import { endsStream } from "./flags.ts";

/** What of an event stream may go to its client, and the event that ends it, which waits until its count is committed. */
export interface Hold {
  /** Part of a long event, not the last. */
  pass(bytes: Uint8Array): void;
  event(event: Uint8Array): void;
  /** The last bytes of a long event. If that ends the stream, its last line ends wait. */
  lastPiece(bytes: Uint8Array, endsStream: boolean): void;
  /** The stream ends with a long event, so that nothing of ours fits in. */
  waitsInLine(): boolean;
  /** @returns what may be sent now */
  take(): Uint8Array;
  /** @returns the event that ends the stream and what came with it, once. Nothing waits afterwards */
  takeEnd(): Uint8Array | undefined;
}

export function createHold(): Hold {
  const ready: Uint8Array[] = [];
  let end: Uint8Array[] | undefined;
  let hasEnded = false;
  let waitsInLine = false;

  const pass = (bytes: Uint8Array): void => void (end ?? ready).push(bytes);

  function beginEnd(): void {
    hasEnded = true;
    end = [];
  }

  function endLong(bytes: Uint8Array): void {
    let at = bytes.length;
    while (at > 0 && isLineEnd(bytes[at - 1])) at--;
    pass(bytes.subarray(0, at));
    beginEnd();
    pass(bytes.subarray(at));
    waitsInLine = true;
  }

  return {
    pass,
    event(event) {
      if (hasEnded || !endsStream(event)) return pass(event);
      if (event.length > maxHeldEventBytes) return endLong(event);
      beginEnd();
      pass(event);
    },
    lastPiece(bytes, isEnd) {
      if (isEnd && !hasEnded) endLong(bytes);
      else pass(bytes);
    },
    waitsInLine: () => waitsInLine,
    take: () => (ready.length === 1 ? (ready.pop() ?? nothing) : joined(ready.splice(0))),
    takeEnd() {
      const bytes = end && joined(end);
      end = undefined;
      return bytes;
    },
  };
}

const nothing = new Uint8Array();

/** Without a copy if they stand side by side, as those that came in one chunk do. */
export function joined(pieces: readonly Uint8Array[]): Uint8Array {
  const [first = nothing] = pieces;
  if (pieces.length < 2) return first;
  let end = first.byteOffset;
  const isOne = pieces.every(({ buffer, byteOffset, length }) => {
    const follows = buffer === first.buffer && byteOffset === end;
    end += length;
    return follows;
  });
  return isOne ? new Uint8Array(first.buffer, first.byteOffset, end - first.byteOffset) : Buffer.concat(pieces);
}
