import type { RequestRecord } from "../domain/requests.ts";
import type { RequestObserver } from "../domain/requests.ts";
import type { RunningHandle } from "../domain/requests.ts";
import type { RunningRequest } from "../domain/requests.ts";
import { createBag } from "../runtime/bag.ts";
import { batchPerTick } from "../time/per-tick.ts";

/** A running request and the id by which it can be ended. */
export interface IdentifiedRequest extends RunningRequest {
  id: string;
}

/** Knows the requests in flight, for the metrics, the console and the supervisor. */
export interface InFlight {
  /** @returns to be called when it has ended */
  add(request: RunningHandle): () => void;
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
  // Random: in containers every process may have the same id, and an id must not end another process's request.
  const prefix = crypto.randomUUID().slice(0, 8);
  const idOf = (number: number): string => `${prefix}-${number}`;
  let lastNumber = 0;
  const running = createBag<{ number: number; request: RunningHandle }>();
  let becameIdle = Promise.withResolvers<void>();
  return {
    add(request) {
      lastNumber += 1;
      const remove = running.add({ number: lastNumber, request });
      return () => {
        remove();
        if (running.size() > 0) return;
        becameIdle.resolve();
        becameIdle = Promise.withResolvers();
      };
    },
    count: running.size,
    list: () =>
      running
        .list()
        .toSorted((a, b) => a.number - b.number)
        .slice(0, maxListed)
        .map(({ number, request }) => Object.assign(request.describe(), { id: idOf(number) })),
    end(id) {
      const found = running.list().find(({ number }) => idOf(number) === id);
      found?.request.end();
      return found !== undefined;
    },
    idle: async () => (running.size() === 0 ? undefined : becameIdle.promise),
  };
}

export function observeAll(...observers: RequestObserver[]): RequestObserver {
  return {
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
  return { finished: ended.add };
}
