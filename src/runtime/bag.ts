/**
 * Items in no order, for what comes and goes with each request.
 * In place of a Map or a Set: what is deleted from one outlives collections of young objects, together with all that can
 * be reached from it, until a full collection. Under load that was whatever a request had allocated, and an eighth of the
 * main thread's time went into looking through it (Bun 1.4.5). Remove when deleted entries are collected while they are
 * young.
 * @param onEmpty called when the last item is removed
 */
export function createBag<T>(onEmpty?: () => void) {
  /** Each with its index in the array. */
  const entries: { item: T; at: number }[] = [];

  return {
    /** @returns removes it, if it is still there */
    add(item: T): () => void {
      const entry = { item, at: entries.length };
      entries.push(entry);
      return () => {
        if (entries[entry.at] !== entry) return;
        const last = entries.pop();
        if (last !== undefined && last !== entry) {
          entries[entry.at] = last;
          last.at = entry.at;
        }
        if (entries.length === 0) onEmpty?.();
      };
    },
    clear(): void {
      entries.length = 0;
    },
    size: (): number => entries.length,
    /** A copy. */
    list: (): T[] => entries.map(({ item }) => item),
  };
}
