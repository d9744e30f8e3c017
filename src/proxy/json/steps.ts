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

export interface Portions {
  /** How long steps run before the next wait. */
  portionMs: number;
  /** Milliseconds from any start. */
  now: () => number;
  /** Resolves at the start of the next slice. */
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
