import type { RequestObserver, RequestRecord } from "../domain.ts";
import { batchPerTick } from "../time/per-tick.ts";

/** Counts the requests in flight, for the metrics, the console and the supervisor. */
export interface InFlight extends RequestObserver {
  count(): number;
  /** Resolves when there are none. */
  idle(): Promise<void>;
}

export function createInFlight(): InFlight {
  let count = 0;
  let becameIdle = Promise.withResolvers<void>();
  return {
    started: () => void count++,
    finished() {
      count--;
      if (count > 0) return;
      becameIdle.resolve();
      becameIdle = Promise.withResolvers();
    },
    count: () => count,
    idle: async () => (count === 0 ? undefined : becameIdle.promise),
  };
}

export function observeAll(...observers: RequestObserver[]): RequestObserver {
  return {
    started: () => {
      for (const observer of observers) observer.started();
    },
    finished: (record) => {
      for (const observer of observers) observer.finished(record);
    },
  };
}

/**
 * Reports all requests that ended in one tick together at its end. This halves the cost, and no response waits for the
 * observers.
 */
export function observePerTick(observer: RequestObserver): RequestObserver {
  const ended = batchPerTick<RequestRecord>((records) => {
    for (const record of records) observer.finished(record);
  });
  return { started: observer.started, finished: ended.add };
}
