export type Pacer = ReturnType<typeof createPacer>;

interface Subscriber {
  periodMs: number;
  dueMs: number;
  onTick: () => void;
}

const pollMs = 5;

/** Calls each subscriber at its own rate from one shared timer: thousands of timers cost more than the frames they send. */
export function createPacer() {
  const subscribers = new Set<Subscriber>();
  let timer: ReturnType<typeof setInterval> | undefined;

  const callDue = (): void => {
    const nowMs = performance.now();
    for (const subscriber of subscribers) {
      if (subscriber.dueMs > nowMs) continue;
      // Counted from the due time, so that a late timer does not lower the rate. A subscriber that is more than one
      // tick late loses the missed ticks; otherwise they would all arrive in one burst.
      subscriber.dueMs = Math.max(subscriber.dueMs, nowMs - subscriber.periodMs) + subscriber.periodMs;
      subscriber.onTick();
    }
  };

  const unsubscribe = (subscriber: Subscriber): void => {
    subscribers.delete(subscriber);
    if (subscribers.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };

  return {
    /** @returns unsubscribe */
    subscribe(perSecond: number, onTick: () => void): () => void {
      const periodMs = 1000 / perSecond;
      const subscriber: Subscriber = { periodMs, dueMs: performance.now() + periodMs, onTick };
      subscribers.add(subscriber);
      timer ??= setInterval(callDue, pollMs);
      return () => unsubscribe(subscriber);
    },
    close(): void {
      subscribers.clear();
      clearInterval(timer);
    },
  };
}
