import { beat } from "./answer.ts";
import type { Cut, Move } from "./moves.ts";
import type { Pacer } from "./pacer.ts";
import type { SocketWire } from "./wire.ts";

export interface Play {
  moves: Iterator<Move>;
  wire: SocketWire;
  pacer: Pacer;
  /** 0: no waiting at beats. */
  framesPerSecond: number;
  /** Called for each beat: one more token. */
  onBeat: () => void;
  /** Not called where the client leaves before the end. */
  onEnd: (ending: "finished" | "broken") => void;
}

/** How many bytes are gathered before they are handed to the socket. */
const gatherBytes = 64 * 1024;
/** How many moves one stream makes before others get their turn. */
const movesPerTurn = 64;

/** Carries out the moves one after the other, no faster than the client reads. @returns stop, for a client that left */
export function play({ moves, wire, pacer, framesPerSecond, onBeat, onEnd }: Play): () => void {
  let leavePacer: (() => void) | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let waitsForBeat = false;
  let isStopped = false;
  /** Text that belongs together goes out in one write; a pause, a beat or the end sends it on its way. */
  let gathered = "";

  const stop = (): void => {
    isStopped = true;
    leavePacer?.();
    clearTimeout(timer);
  };
  const end = (ending: "finished" | "broken"): void => {
    stop();
    onEnd(ending);
  };
  const afterDrain = (then: () => void): void => wire.whenDrained(() => !isStopped && then());

  const waitForBeat = (): void => {
    waitsForBeat = true;
    leavePacer ??= pacer.join(framesPerSecond, () => {
      // A stream whose client reads too slowly misses beats.
      if (!waitsForBeat) return;
      waitsForBeat = false;
      advance();
    });
  };
  const cut = (how: Cut): void => {
    // First told, then done: the socket reports its closing from within.
    end("broken");
    if (how === "close") wire.end();
    else wire.reset();
  };
  const flush = (): void => {
    const text = gathered;
    gathered = "";
    if (text !== "") wire.write(text);
  };

  /** @returns whether the next move may follow at once */
  const make = (move: Move): boolean => {
    if (typeof move === "string") {
      gathered += move;
      if (gathered.length < gatherBytes) return true;
    }
    flush();
    if (move instanceof Uint8Array) wire.write(move);
    else if (move === beat) {
      onBeat();
      if (framesPerSecond > 0) waitForBeat();
      return framesPerSecond === 0;
    } else if (typeof move === "object" && "cut" in move) {
      afterDrain(() => cut(move.cut));
      return false;
    } else if (typeof move === "object") {
      if (Number.isFinite(move.pauseMs)) timer = setTimeout(advance, move.pauseMs);
      return false;
    }
    return true;
  };

  const advance = (): void => {
    for (let turn = 0; turn < movesPerTurn; turn++) {
      if (wire.isFull) return afterDrain(advance);
      const { value: move, done } = moves.next();
      if (done === true) {
        flush();
        return afterDrain(() => end("finished"));
      }
      if (!make(move)) return;
    }
    setImmediate(() => !isStopped && advance());
  };
  advance();
  return stop;
}
