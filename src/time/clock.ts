// Time: two clocks, Seoul's days, the windows of limits, waiting, backoff, and what is batched per tick.
//
// It keeps true: the wall clock jumps when the machine's time is set, so durations and timeouts go by the monotonic
// one, and neither type can be assigned to the other. Both are arguments, so that tests can cross midnight. Days,
// months and buckets are Seoul's on any machine. A leaf: it imports nothing of ours.

declare const kind: unique symbol;

/** Epoch milliseconds. */
export interface WallClock {
  (): number;
  readonly [kind]?: "wall";
}

/** Milliseconds since an arbitrary time. Never jumps. */
export interface MonotonicClock {
  (): number;
  readonly [kind]?: "monotonic";
}
