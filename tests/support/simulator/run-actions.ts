import type { Pacer } from "./pacer.ts";
import { tick } from "./simulated-response.ts";
import type { Cut, WireAction } from "./wire-actions.ts";
import type { Wire } from "./wire.ts";

export interface ActionRun {
  actions: Iterator<WireAction>;
  wire: Wire;
  pacer: Pacer;
  /** 0: do not wait at ticks. */
  framesPerSecond: number;
  /** Called at each tick: one more token. */
  onTick: () => void;
  /** Not called if the client leaves before the end. */
  onEnd: (ending: "finished" | "broken") => void;
}

/** How much text is buffered before it goes to the socket. */
const maxBufferedLength = 64 * 1024;
/** How many actions one stream runs before it yields to the others. */
const actionsBeforeYield = 64;

interface RunState extends ActionRun {
  isStopped: boolean;
  waitsForTick: boolean;
  unsubscribe: (() => void) | undefined;
  timer: ReturnType<typeof setTimeout> | undefined;
  /** Text up to the next pause, tick, cut or end goes out in one write. */
  buffered: string;
}

/** Runs the actions in order, no faster than the client reads. @returns stop, for a client that left */
export function runActions(options: ActionRun): () => void {
  const run: RunState = {
    ...options,
    isStopped: false,
    waitsForTick: false,
    unsubscribe: undefined,
    timer: undefined,
    buffered: "",
  };
  advance(run);
  return () => stop(run);
}

function advance(run: RunState): void {
  if (run.isStopped) return;
  const { wire, actions } = run;
  for (let count = 0; count < actionsBeforeYield; count++) {
    if (wire.isFull) return wire.whenDrained(() => advance(run));
    const { value: action, done } = actions.next();
    if (done === true) return afterDrain(run, () => end(run, "finished"));
    if (!perform(run, action)) return;
  }
  setImmediate(advance, run);
}

/** @returns whether the next action may follow immediately */
function perform(run: RunState, action: WireAction): boolean {
  if (typeof action === "string") {
    run.buffered += action;
    if (run.buffered.length >= maxBufferedLength) flush(run);
    return true;
  }
  flush(run);
  if (action instanceof Uint8Array) {
    run.wire.write(action);
    return true;
  }
  if (action === tick) {
    run.onTick();
    if (run.framesPerSecond > 0) waitForTick(run);
    return run.framesPerSecond === 0;
  }
  if ("cut" in action) afterDrain(run, () => cut(run, action.cut));
  else if (Number.isFinite(action.pauseMs)) run.timer = setTimeout(advance, action.pauseMs, run);
  return false;
}

function flush(run: RunState): void {
  const text = run.buffered;
  run.buffered = "";
  if (text !== "") run.wire.write(text);
}

function afterDrain(run: RunState, then: () => void): void {
  flush(run);
  run.wire.whenDrained(() => !run.isStopped && then());
}

function waitForTick(run: RunState): void {
  run.waitsForTick = true;
  run.unsubscribe ??= run.pacer.subscribe(run.framesPerSecond, () => {
    // A stream whose client reads too slowly misses ticks.
    if (!run.waitsForTick) return;
    run.waitsForTick = false;
    advance(run);
  });
}

function cut(run: RunState, how: Cut): void {
  // `end` comes first, because the socket reports its close synchronously.
  end(run, "broken");
  if (how === "close") run.wire.end();
  else run.wire.reset();
}

function end(run: RunState, ending: "finished" | "broken"): void {
  stop(run);
  run.onEnd(ending);
}

function stop(run: RunState): void {
  run.isStopped = true;
  run.unsubscribe?.();
  clearTimeout(run.timer);
}
