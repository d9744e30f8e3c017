import type { RequestObserver, RequestRecord } from "../domain.ts";
import { batchPerTick } from "../time/per-tick.ts";

/** The one count of requests in flight: metrics, console and supervisor all read it. */
export interface InFlight extends RequestObserver {
  count(): number;
}

export function createInFlight(): InFlight {
  let count = 0;
  return {
    started: () => void count++,
    finished: () => void count--,
    count: () => count,
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
 * Reports all requests that ended in one tick at the tick's end: together they cost half of what they cost one by one,
 * and no response waits for it.
 */
export function observePerTick(observer: RequestObserver): RequestObserver {
  const ended = batchPerTick<RequestRecord>((records) => {
    for (const record of records) observer.finished(record);
  });
  return { started: observer.started, finished: ended.add };
}
