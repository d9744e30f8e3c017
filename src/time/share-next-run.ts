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
    const shared = next.get(key);
    if (shared !== undefined) return shared;
    const later = current.catch(() => {}).then(() => run(key));
    next.set(key, later);
    return later;
  };
}
