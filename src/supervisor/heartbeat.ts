export interface HeartbeatLimits {
  everyMs: number;
  /** Questions in a row. */
  mostUnanswered: number;
}

/** What a watch does to a process. */
export interface Watched {
  ask(): void;
  /** It has left all questions unanswered. Called once. */
  onUnresponsive(): void;
}

export interface Heartbeat extends Disposable {
  /** The process said anything at all, however late. */
  alive(): void;
}

/**
 * Asks a process again and again whether it lives: one that stands still keeps its share of the port, and whoever the
 * kernel sends there waits for ever.
 */
export function startHeartbeat({ everyMs, mostUnanswered }: HeartbeatLimits, process: Watched): Heartbeat {
  // Questions are counted and not time, which passes for nobody while a computer sleeps or this process is stopped.
  let unanswered = 0;
  let next = setTimeout(turn, everyMs);

  function turn(): void {
    if (unanswered === mostUnanswered) return process.onUnresponsive();
    unanswered++;
    process.ask();
    next = setTimeout(turn, everyMs);
  }

  return {
    alive: () => void (unanswered = 0),
    [Symbol.dispose]: () => clearTimeout(next),
  };
}
