export interface HeartbeatLimits {
  intervalMs: number;
  /** Pings in a row without a sign of life. */
  maxMissed: number;
}

export type Heartbeat = ReturnType<typeof startHeartbeat>;

/**
 * Pings a process at an interval: an unresponsive process keeps its share of the port, and connections that the kernel gives it
 * are never served. `onUnresponsive` is called once, after `maxMissed` pings.
 */
export function startHeartbeat(
  { intervalMs, maxMissed }: HeartbeatLimits,
  { ping, onUnresponsive }: { ping(): void; onUnresponsive(): void },
) {
  // Counts pings rather than time, which also passes while the machine sleeps or this process is stopped.
  let missed = 0;
  let next = setTimeout(beat, intervalMs);

  function beat(): void {
    if (missed === maxMissed) return onUnresponsive();
    missed++;
    ping();
    next = setTimeout(beat, intervalMs);
  }

  return {
    /** Any message from the process counts, however late. */
    alive: (): void => void (missed = 0),
    [Symbol.dispose]: () => clearTimeout(next),
  };
}
