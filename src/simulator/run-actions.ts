import { tick } from "./answer.ts";
import type { Cut, WireAction } from "./wire-actions.ts";
import type { Pacer } from "./pacer.ts";
import type { SocketWire } from "./wire.ts";

export interface Play {
  moves: Iterator<WireAction>;
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

interface Playback extends Play {
  isStopped: boolean;
  waitsForBeat: boolean;
  leavePacer: (() => void) | undefined;
  timer: ReturnType<typeof setTimeout> | undefined;
  /** Text that belongs together goes out in one write; a pause, a beat or the end sends it on its way. */
  gathered: string;
}

/** Carries out the moves one after the other, no faster than the client reads. @returns stop, for a client that left */
export function play(options: Play): () => void {
  const playback: Playback = {
    ...options,
    isStopped: false,
    waitsForBeat: false,
    leavePacer: undefined,
    timer: undefined,
    gathered: "",
  };
  advance(playback);
  return () => stop(playback);
}

function advance(playback: Playback): void {
  if (playback.isStopped) return;
  const { wire, moves } = playback;
  for (let turn = 0; turn < movesPerTurn; turn++) {
    if (wire.isFull) return wire.whenDrained(() => advance(playback));
    const { value: move, done } = moves.next();
    if (done === true) return afterDrain(playback, () => end(playback, "finished"));
    if (!make(playback, move)) return;
  }
  setImmediate(advance, playback);
}

/** @returns whether the next move may follow at once */
function make(playback: Playback, move: WireAction): boolean {
  if (typeof move === "string") {
    playback.gathered += move;
    if (playback.gathered.length >= gatherBytes) flush(playback);
    return true;
  }
  flush(playback);
  if (move instanceof Uint8Array) {
    playback.wire.write(move);
    return true;
  }
  if (move === tick) {
    playback.onBeat();
    if (playback.framesPerSecond > 0) waitForBeat(playback);
    return playback.framesPerSecond === 0;
  }
  if ("cut" in move) afterDrain(playback, () => cut(playback, move.cut));
  else if (Number.isFinite(move.pauseMs)) playback.timer = setTimeout(advance, move.pauseMs, playback);
  return false;
}

function flush(playback: Playback): void {
  const text = playback.gathered;
  playback.gathered = "";
  if (text !== "") playback.wire.write(text);
}

function afterDrain(playback: Playback, then: () => void): void {
  flush(playback);
  playback.wire.whenDrained(() => !playback.isStopped && then());
}

function waitForBeat(playback: Playback): void {
  playback.waitsForBeat = true;
  playback.leavePacer ??= playback.pacer.join(playback.framesPerSecond, () => {
    // A stream whose client reads too slowly misses beats.
    if (!playback.waitsForBeat) return;
    playback.waitsForBeat = false;
    advance(playback);
  });
}

function cut(playback: Playback, how: Cut): void {
  // First told, then done: the socket reports its closing from within.
  end(playback, "broken");
  if (how === "close") playback.wire.end();
  else playback.wire.reset();
}

function end(playback: Playback, ending: "finished" | "broken"): void {
  stop(playback);
  playback.onEnd(ending);
}

function stop(playback: Playback): void {
  playback.isStopped = true;
  playback.leavePacer?.();
  clearTimeout(playback.timer);
}
