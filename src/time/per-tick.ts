/** Collects the items of one tick and passes them to `handle` at its end, in order. */
export function batchPerTick<T>(handle: (items: T[]) => void) {
  let items: T[] = [];

  function flush(): void {
    if (items.length === 0) return;
    const batch = items;
    items = [];
    handle(batch);
  }

  return {
    add(item: T): void {
      if (items.length === 0) setImmediate(flush);
      items.push(item);
    },
    /** Passes on the items immediately, without waiting for the end of the tick. */
    flush,
  };
}

/**
 * Runs one query at the end of a tick for all callers that asked for the same key in that tick. Not a cache: the query
 * runs after every caller that shares its result has arrived. Under load, a tick has a dozen requests, mostly with few
 * keys.
 */
export function coalescePerTick<T>(find: (key: string) => T | Promise<T>): (key: string) => Promise<T> {
  let asked = new Map<string, PromiseWithResolvers<T>>();

  function findAll(): void {
    const queries = asked;
    asked = new Map();
    for (const [key, { resolve, reject }] of queries) {
      try {
        resolve(find(key));
      } catch (error) {
        reject(error);
      }
    }
  }

  return (key) => {
    const shared = asked.get(key);
    if (shared !== undefined) return shared.promise;
    if (asked.size === 0) setImmediate(findAll);
    const query = Promise.withResolvers<T>();
    asked.set(key, query);
    return query.promise;
  };
}

/**
 * Runs one query for a key at a time; all who ask meanwhile share the next one. Not a cache: the query runs after every
 * caller that shares its result has arrived. However often somebody asks, the queries of others wait for few of theirs.
 */
export function shareNextRun<K, T>(find: (key: K) => Promise<T>): (key: K) => Promise<T> {
  const running = new Map<K, Promise<T>>();
  const next = new Map<K, Promise<T>>();

  function run(key: K): Promise<T> {
    next.delete(key);
    const result = find(key);
    running.set(key, result);
    const end = (): void => {
      if (!next.has(key)) running.delete(key);
    };
    result.then(end, end);
    return result;
  }

  return (key) => {
    const current = running.get(key);
    if (current === undefined) return run(key);
    return next.getOrInsertComputed(key, () => current.catch(() => {}).then(() => run(key)));
  };
}
