import type { Clock } from "../time/clock.ts";
import type { ErrorCode } from "./errors.ts";
import type { Observer, Outcome } from "../domain.ts";
import type { Usage } from "./usage/usage.ts";

/** What is noted of one request while it runs, handed to the observer once it is over. */
export interface Exchange {
  keyId: number | undefined;
  streamed: boolean;
  status: number;
  /** The request went to the upstream now. */
  sent(): void;
  /** The upstream's response head came. */
  answered(): void;
  firstByte(): void;
  /** Called once it is over. */
  whenFinished(callback: () => void): void;
  /** Only the first call counts. */
  finish(outcome: Outcome, details?: { code?: ErrorCode | undefined; usage?: Usage }): void;
}

/** @param monotonic milliseconds that never jump */
export function beginExchange(observer: Observer, monotonic: Clock, method: string, path: string): Exchange {
  const begunAt = monotonic();
  let sentAt = begunAt;
  let upstreamMs: number | undefined;
  let firstByteMs: number | undefined;
  let finished = false;
  let afterwards = (): void => {};
  observer.started();
  const exchange: Exchange = {
    keyId: undefined,
    streamed: false,
    // The client left before there was anything to say (nginx's number for it).
    status: 499,
    sent() {
      sentAt = monotonic();
    },
    answered() {
      upstreamMs = monotonic() - sentAt;
    },
    firstByte() {
      firstByteMs ??= monotonic() - begunAt;
    },
    whenFinished(callback) {
      afterwards = callback;
    },
    finish(outcome, details) {
      if (finished) return;
      finished = true;
      afterwards();
      observer.finished({
        method,
        path,
        status: exchange.status,
        outcome,
        keyId: exchange.keyId,
        code: details?.code,
        streamed: exchange.streamed,
        upstreamMs,
        firstByteMs,
        durationMs: monotonic() - begunAt,
        usage: details?.usage,
      });
    },
  };
  return exchange;
}
