import { type Backoff, wait } from "../time/wait.ts";
import type { WallClock } from "../time/clock.ts";
import type { SampleBody } from "./gpu-entry.ts";
import type { LogOnChange } from "./log-on-change.ts";
import { type PostResult, type PushTarget, resultOfError, resultOfResponse } from "./post-result.ts";

/** Enough to connect and for the server's queries; samples become stale sooner. */
const requestTimeoutMs = 10_000;

/** Posts one sample set. Never rejects. */
export async function postSamples(target: PushTarget, body: SampleBody, signal: AbortSignal): Promise<PostResult> {
  const timeout = AbortSignal.timeout(target.timeoutMs ?? requestTimeoutMs);
  try {
    const response = await fetch(target.url, {
      method: "POST",
      headers: { authorization: `Bearer ${target.key}`, "content-type": "application/json" },
      body: JSON.stringify(body),
      // The key is only for the host that the operator named.
      redirect: "manual",
      signal: AbortSignal.any([timeout, signal]),
    });
    return resultOfResponse(target.url, response.status, response.headers, await response.text());
  } catch (error) {
    return resultOfError(timeout.aborted ? "timeout" : error);
  }
}

export interface TimedSamples {
  body: SampleBody;
  /** Epoch milliseconds. */
  readAt: number;
}

/** Posts the latest samples, one request at a time, until the signal aborts. Samples that arrive meanwhile are dropped. */
export async function postLatest(options: {
  target: PushTarget;
  latest: Latest<TimedSamples>;
  /** Older samples are dropped, because the server dates samples by their arrival. */
  staleMs: number;
  backoff: Backoff;
  /** The wait after a rejected key, which only a person can fix. */
  rejectedWaitMs: number;
  clock: WallClock;
  logOnChange: LogOnChange;
  signal: AbortSignal;
}): Promise<void> {
  const { target, latest, staleMs, backoff, rejectedWaitMs, clock, logOnChange, signal } = options;
  const { url } = target;
  for (;;) {
    const timed = await latest.take(signal);
    if (signal.aborted) return;
    if (timed === undefined || clock() - timed.readAt > staleMs) continue;
    const result = await postSamples(target, timed.body, signal);
    if (signal.aborted) return;
    if (result.kind === "accepted") {
      backoff.reset();
      logOnChange("info", "Sending samples", { url });
    } else {
      logOnChange("warn", "Cannot send samples; retrying", { url, reason: result.reason });
      await wait(result.kind === "key rejected" ? rejectedWaitMs : backoff.next(), signal);
    }
  }
}

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
