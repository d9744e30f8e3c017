import type { MaybePromise } from "../store/store.ts";

/**
 * Asks once, at the end of a turn of the event loop, for all that asked for the same in that turn. It is no cache that
 * could be stale: the question is put after the last of those who get its answer has come. Under load a turn brings a
 * dozen requests, mostly with few keys.
 */
export function coalescePerTick<T>(find: (of: string) => MaybePromise<T>): (of: string) => Promise<T> {
  let asked = new Map<string, PromiseWithResolvers<T>>();

  function answerAll(): void {
    const answered = asked;
    asked = new Map();
    for (const [of, { resolve, reject }] of answered) {
      try {
        resolve(find(of));
      } catch (error) {
        reject(error);
      }
    }
  }

  return (of) => {
    const known = asked.get(of);
    if (known !== undefined) return known.promise;
    if (asked.size === 0) setImmediate(answerAll);
    const answer = Promise.withResolvers<T>();
    asked.set(of, answer);
    return answer.promise;
  };
}
