declare const kind: unique symbol;

/** Milliseconds since the epoch. It may jump when the machine's time is set. Passed in, so that tests can cross midnight. */
export interface WallClock {
  (): number;
  readonly [kind]?: "wall";
}

/** Milliseconds since an arbitrary moment, never jumping: for durations and timeouts. Does not fit where a `WallClock` is wanted. */
export interface MonotonicClock {
  (): number;
  readonly [kind]?: "monotonic";
}
