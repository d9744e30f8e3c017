export interface Latest<T> {
  /** Replaces an item that was not taken. */
  put(item: T): void;
  /** Resolves with the latest item once there is one, or undefined if the signal aborts. One taker at a time. */
  take(signal: AbortSignal): Promise<T | undefined>;
}

/** A queue of one item: a newer item replaces an older one. */
export function createLatest<T>(): Latest<T> {
  let item: T | undefined;
  let arrived = Promise.withResolvers<void>();
  return {
    put(next) {
      item = next;
      arrived.resolve();
    },
    async take(signal) {
      // Both a new item and an abort wake the taker.
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
