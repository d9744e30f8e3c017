export interface Latest<T> {
  /** Replaces what has not been taken. */
  put(item: T): void;
  /** The newest item, as soon as there is one; undefined once the signal aborts. One taker at a time. */
  take(signal: AbortSignal): Promise<T | undefined>;
}

/** A queue that holds one item: what nobody took in time is not worth keeping. */
export function createLatest<T>(): Latest<T> {
  let item: T | undefined;
  let arrived = Promise.withResolvers<void>();
  return {
    put(next) {
      item = next;
      arrived.resolve();
    },
    async take(signal) {
      // Both an item and the end of the waiting wake the taker; the signal tells which.
      const { promise, resolve } = arrived;
      const wake = (): void => resolve();
      signal.addEventListener("abort", wake);
      if (!signal.aborted) await promise;
      signal.removeEventListener("abort", wake);
      const taken = item;
      item = undefined;
      arrived = Promise.withResolvers();
      return signal.aborted ? undefined : taken;
    },
  };
}
