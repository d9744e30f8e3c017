declare const kind: unique symbol;

/** Epoch milliseconds; jumps when the machine's time is set. An argument, so that tests can cross midnight. */
export interface WallClock {
  (): number;
  readonly [kind]?: "wall";
}

/** Milliseconds since an arbitrary time, for durations and timeouts. Never jumps. Not assignable to a `WallClock`. */
export interface MonotonicClock {
  (): number;
  readonly [kind]?: "monotonic";
}
