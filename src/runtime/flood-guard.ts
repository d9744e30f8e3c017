type Handler<R> = (request: R) => Response | Promise<Response>;

/** How many requests may be begun in one tick. */
const maxPerTick = 128;

/**
 * Bun reads on for as long as 1024 connections are ready (1.4.5). If the responses to a flood need nothing but a function
 * call, its connections are ready again at once, and timers, messages of other threads and all other requests stand still
 * for seconds. So the requests beyond a number wait, in order, for the next ticks; those that are under way go on in
 * between. Remove when one tick serves each connection at most once.
 */
export function createFloodGuard(): <R>(handler: Handler<R>) => Handler<R> {
  /** How many were begun since the last tick that is known to have ended. */
  let begun = 0;
  let waiting: (() => void)[] = [];
  let isScheduled = false;

  function schedule(): void {
    if (isScheduled) return;
    isScheduled = true;
    setImmediate(beginNext);
  }

  function beginNext(): void {
    isScheduled = false;
    const next = waiting.slice(0, maxPerTick);
    waiting = waiting.slice(maxPerTick);
    begun = next.length;
    for (const begin of next) begin();
    if (waiting.length > 0) schedule();
  }

  return (handler) => (request) => {
    if (begun < maxPerTick && waiting.length === 0) {
      begun++;
      // Not for each request: under usual load the guard costs nothing.
      if (begun === maxPerTick / 2) schedule();
      return handler(request);
    }
    schedule();
    return new Promise<void>((begin) => waiting.push(begin)).then(() => handler(request));
  };
}
