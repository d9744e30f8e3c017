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

export interface Slices {
  /** How long steps run before the next wait. */
  sliceMs: number;
  /** Milliseconds from any start. */
  now: () => number;
  /** Resolves at the start of the next slice. */
  waitForTurn: () => Promise<void>;
}

export async function runInSlices<T>(steps: Steps<T>, { sliceMs, now, waitForTurn }: Slices): Promise<T> {
  for (;;) {
    await waitForTurn();
    const sliceEnd = now() + sliceMs;
    do {
      const step = steps.next();
      if (step.done === true) return step.value;
    } while (now() < sliceEnd);
  }
}

/** What a small request needs of the event loop until it waits for its backend, in several ticks. */
const gapMs = 1;

/** Slices of which, however many computations share them, only one runs at a time and a gap for others follows each. */
export function createSlices(sliceMs: number, now = () => performance.now()): Slices {
  /** In the order in which they get a turn. A turn is scheduled if and only if this is not empty. */
  const waiting: (() => void)[] = [];
  let nextTurnAt = -Infinity;

  function scheduleTurn(): void {
    const waitMs = nextTurnAt - now();
    if (waitMs > 0) setTimeout(startTurn, waitMs);
    else setImmediate(startTurn);
  }

  function startTurn(): void {
    nextTurnAt = now() + sliceMs + gapMs;
    waiting.shift()?.();
    if (waiting.length > 0) scheduleTurn();
  }

  const waitForTurn = (): Promise<void> =>
    new Promise((resolve) => {
      waiting.push(resolve);
      if (waiting.length === 1) scheduleTurn();
    });
  return { sliceMs, now, waitForTurn };
}

/** One for all that shares the event loop, servers in one process included. */
export const eventLoopSlices = createSlices(2);
