import type { Log } from "../log/log.ts";
import type { RequestObserver, RequestRecord } from "../domain.ts";

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

/** One line for each request, once it is over. */
export function createRequestLog(log: Log): RequestObserver {
  return {
    started: () => {},
    finished: (record) =>
      log.info("request", {
        method: record.method,
        path: record.path,
        status: record.status,
        outcome: record.outcome,
        keyId: record.keyId,
        code: record.code,
        streamed: record.streamed,
        upstreamMs: rounded(record.upstreamMs),
        firstByteMs: rounded(record.firstByteMs),
        durationMs: rounded(record.durationMs),
        inputTokens: record.usage?.inputTokens,
        outputTokens: record.usage?.outputTokens,
      }),
  };
}

const rounded = (ms: number | undefined): number | undefined =>
  ms === undefined ? undefined : Math.round(ms * 10) / 10;

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
 * Tells of all requests that ended in one turn of the event loop at the turn's end: one after the other they cost half
 * of what they cost each by itself, and no answer waits for it.
 */
export function batchPerTick(observer: RequestObserver): RequestObserver {
  let ended: RequestRecord[] = [];

  function tell(): void {
    const records = ended;
    ended = [];
    for (const record of records) observer.finished(record);
  }

  return {
    started: observer.started,
    finished(record) {
      if (ended.length === 0) setImmediate(tell);
      ended.push(record);
    },
  };
}
