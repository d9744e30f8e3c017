export type Latest<T> = ReturnType<typeof createLatest<T>>;

/** A queue of one item: a newer item replaces an older one. */
export function createLatest<T>() {
  let item: T | undefined;
  let arrived = Promise.withResolvers<void>();
  return {
    /** Replaces an item that was not taken. */
    put(next: T): void {
      item = next;
      arrived.resolve();
    },
    /** Resolves with the latest item once there is one, or undefined if the signal aborts. One taker at a time. */
    async take(signal: AbortSignal): Promise<T | undefined> {
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
