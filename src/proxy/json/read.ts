import { isUtf8, partOf } from "./bytes.ts";
import { continueScan, isComplete, startScan } from "./scan.ts";
import type { JsonSlot } from "./slots.ts";
import { notJson } from "./tokens.ts";

/**
 * A computation that yields after every step of at most about a millisecond, so that one code serves short texts, which
 * are done at once, and long ones, which must not keep others waiting.
 */
export type Steps<T> = Generator<void, T>;

export function runAtOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

interface Portions {
  /** How long steps run before the next wait. */
  portionMs: number;
  /** Milliseconds from any start. */
  now: () => number;
  /** Resolves at the start of the next portion. */
  waitForTurn: () => Promise<void>;
}

export async function runInPortions<T>(steps: Steps<T>, { portionMs, now, waitForTurn }: Portions): Promise<T> {
  for (;;) {
    await waitForTurn();
    const portionEnd = now() + portionMs;
    do {
      const step = steps.next();
      if (step.done === true) return step.value;
    } while (now() < portionEnd);
  }
}

/** What a small request needs of the event loop until it waits for its backend, in several ticks. */
const gapMs = 1;

/** Portions of which, however many computations share them, only one runs at a time and a gap for others follows each. */
export function createPortions(portionMs: number, now = () => performance.now()): Portions {
  /** In the order in which they get a turn. A turn is scheduled if and only if this is not empty. */
  const waiting: (() => void)[] = [];
  let nextTurnAt = -Infinity;

  function scheduleTurn(): void {
    const waitMs = nextTurnAt - now();
    if (waitMs > 0) setTimeout(startTurn, waitMs);
    else setImmediate(startTurn);
  }

  function startTurn(): void {
    nextTurnAt = now() + portionMs + gapMs;
    waiting.shift()?.();
    if (waiting.length > 0) scheduleTurn();
  }

  const waitForTurn = (): Promise<void> =>
    new Promise((resolve) => {
      waiting.push(resolve);
      if (waiting.length === 1) scheduleTurn();
    });
  return { portionMs, now, waitForTurn };
}

/** One for all that shares the event loop, servers in one process included. */
export const eventLoopPortions = createPortions(2);

/** Takes 0.02 ms, or 1 ms for the worst text before it is compiled. */
const stepBytes = 16 * 1024;

/**
 * Fills the slots below `root` from a text of any size; what they hold after a text that is not JSON is meaningless. Blanks
 * of any kind may stand around it.
 * @returns whether it is JSON in valid UTF-8
 */
export function* readJsonInSteps(bytes: Uint8Array, root: JsonSlot): Steps<boolean> {
  const scan = startScan(bytes, root, true);
  let from = 0;
  while (from < bytes.length) {
    const limit = characterStart(bytes, Math.min(from + stepBytes, bytes.length));
    if (!isUtf8(partOf(bytes, from, limit))) return false;
    continueScan(scan, limit);
    if (scan.at === notJson) return false;
    from = limit;
    yield;
  }
  return isComplete(scan);
}

/** The same at once, for short texts, without a check of their UTF-8, and with nothing but JSON's white space around them. */
export function readJson(bytes: Uint8Array, root: JsonSlot): boolean {
  const scan = startScan(bytes, root);
  continueScan(scan, bytes.length);
  return isComplete(scan);
}

/** The start of the character at `at`, in valid UTF-8. */
function characterStart(bytes: Uint8Array, at: number): number {
  let start = at;
  // A continuation byte is not the first of its character.
  while (at - start < 3 && ((bytes[start] ?? 0) & 0xc0) === 0x80) start -= 1;
  return start;
}
