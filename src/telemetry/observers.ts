import type { RequestObserver, RequestRecord, RunningHandle, RunningRequest } from "../domain.ts";
import { batchPerTick } from "../time/per-tick.ts";

/** A running request and the id by which it can be ended. */
export interface IdentifiedRequest extends RunningRequest {
  id: string;
}

/** Knows the requests in flight, for the metrics, the console and the supervisor. */
export interface InFlight extends RequestObserver {
  count(): number;
  /** Oldest first, at most `maxListed`. */
  list(): IdentifiedRequest[];
  /** Ends a request. @returns whether it was in flight here */
  end(id: string): boolean;
  /** Resolves when there are none. */
  idle(): Promise<void>;
}

/** One more than the API lists, so that it knows that there are more. */
const maxListed = 1001;

export function createInFlight(): InFlight {
  let count = 0;
  let nextNumber = 1;
  /** In the order of their start. */
  const running = new Map<RunningHandle, number>();
  let becameIdle = Promise.withResolvers<void>();
  return {
    started(handle) {
      count++;
      if (handle !== undefined) running.set(handle, nextNumber++);
    },
    finished(_record, handle) {
      count--;
      if (handle !== undefined) running.delete(handle);
      if (count > 0) return;
      becameIdle.resolve();
      becameIdle = Promise.withResolvers();
    },
    count: () => count,
    list: () =>
      Iterator.from(running)
        .take(maxListed)
        .map(([handle, number]) => Object.assign(handle.describe(), { id: idOf(number) }))
        .toArray(),
    end(id) {
      const found = Iterator.from(running).find(([, number]) => idOf(number) === id);
      found?.[0].end();
      return found !== undefined;
    },
    idle: async () => (count === 0 ? undefined : becameIdle.promise),
  };
}

/** Different in each process that shares the port. */
const idOf = (number: number): string => `${process.pid}-${number}`;

export function observeAll(...observers: RequestObserver[]): RequestObserver {
  return {
    started: (running) => {
      for (const observer of observers) observer.started(running);
    },
    finished: (record, running) => {
      for (const observer of observers) observer.finished(record, running);
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
  return { started: observer.started, finished: (record) => ended.add(record) };
}
