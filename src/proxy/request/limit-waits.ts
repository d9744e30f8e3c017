import { type Admission, isWorthWaiting, lacksPlace, shortWaitMs } from "../../domain/admissions.ts";
import type { KeyId } from "../../domain/keys.ts";
import type { MonotonicClock } from "../../time/clock.ts";

/** @param mayWait a refusal after which the request asks again does not count */
export type AskLimits = (mayWait: boolean) => Admission | Promise<Admission>;

export interface RequestOfKey {
  keyId: KeyId;
  /** How many of the key may be in flight; null: any number. */
  places: number | null;
  ask: AskLimits;
}

/**
 * The requests of keys that wait until their limits admit them. Those of a key ask again together, in one batch, at random
 * moments and whenever a request of the key ends in this process.
 */
export interface LimitWaits {
  /**
   * Asks again until the request is admitted, or refused for longer than it may wait.
   * @param refused how the limits answered before; undefined if they were not asked
   * @param signal the request no longer waits: it leaves at once, and an admission that comes later is cancelled
   */
  wait(request: RequestOfKey, refused: Admission | undefined, signal: AbortSignal): Promise<Admission>;
  /** Whether requests of the key wait here: those that arrive line up behind them. */
  isWaiting(keyId: KeyId): boolean;
  /** A request of the key has ended, and had taken so long. */
  ended(keyId: KeyId, durationMs: number): void;
  /** How long requests of the key take, of late; undefined if none has ended here. */
  durationOf(keyId: KeyId): number | undefined;
}

export interface LimitWaitsOptions {
  monotonic: MonotonicClock;
  timeoutMs: number;
}

interface Waiter extends Pick<RequestOfKey, "places" | "ask"> {
  since: number;
  /** Since when it waits for a limit other than of places. */
  shortSince: number | undefined;
  settled: PromiseWithResolvers<Admission>;
}

/** The requests of a key that wait here, oldest first. */
interface Line {
  waiters: Set<Waiter>;
  timer: Timer | undefined;
  isAsking: boolean;
  /** How many of the key have ended since it last asked. */
  freed: number;
}

/** Between two times of asking: instances that share a key must not all ask at once. */
const [minPauseMs, maxPauseMs] = [50, 250];
const maxInBatch = 64;
/** How much the last request changes the duration that is expected of the next. */
const weight = 0.2;

export function createLimitWaits({ monotonic, timeoutMs }: LimitWaitsOptions): LimitWaits {
  const lines = new Map<KeyId, Line>();
  const durations = new Map<KeyId, number>();

  const deadlineOf = ({ since, shortSince = Infinity }: Waiter): number =>
    Math.min(since + timeoutMs, shortSince + shortWaitMs);

  async function askFor(line: Line, waiter: Waiter): Promise<void> {
    const isLast = monotonic() >= deadlineOf(waiter);
    const admission = await waiter.ask(!isLast);
    const isRefused = admission.refusedBy !== undefined;
    if (!line.waiters.has(waiter)) return isRefused ? undefined : admission.cancel();
    noteReason(waiter, admission);
    if (isRefused && !isLast && isWorthWaiting(admission)) return;
    line.waiters.delete(waiter);
    waiter.settled.resolve(admission);
  }

  function noteReason(waiter: Waiter, answer: Admission): void {
    if (lacksPlace(answer)) waiter.shortSince = undefined;
    else waiter.shortSince ??= monotonic();
  }

  /** @param most of those whose time is not over */
  async function askAll(keyId: KeyId, line: Line, most: number): Promise<void> {
    if (line.isAsking) return;
    line.isAsking = true;
    line.freed = 0;
    clearTimeout(line.timer);
    const now = monotonic();
    const asking = [...line.waiters].filter((waiter, index) => index < most || deadlineOf(waiter) <= now);
    await Promise.all(asking.map((waiter) => askFor(line, waiter)));
    line.isAsking = false;
    if (line.freed > 0) return askAll(keyId, line, line.freed);
    schedule(keyId, line);
  }

  function schedule(keyId: KeyId, line: Line): void {
    clearTimeout(line.timer);
    if (line.waiters.size === 0) return void lines.delete(keyId);
    const pause = minPauseMs + Math.random() * (maxPauseMs - minPauseMs);
    const nextDeadline = Math.min(...line.waiters.values().map(deadlineOf)) - monotonic();
    line.timer = setTimeout(() => void askAll(keyId, line, mostOf(line)), Math.min(pause, Math.max(0, nextDeadline)));
  }

  function lineOf(keyId: KeyId): Line {
    const line = lines.get(keyId) ?? { waiters: new Set(), timer: undefined, isAsking: false, freed: 0 };
    lines.set(keyId, line);
    return line;
  }

  return {
    async wait({ keyId, places, ask }, refused, signal) {
      const line = lineOf(keyId);
      const settled = Promise.withResolvers<Admission>();
      const waiter: Waiter = { places, ask, since: monotonic(), shortSince: undefined, settled };
      if (refused !== undefined) noteReason(waiter, refused);
      line.waiters.add(waiter);
      signal.addEventListener("abort", () => {
        if (line.waiters.delete(waiter) && !line.isAsking) schedule(keyId, line);
      });
      if (signal.aborted) line.waiters.delete(waiter);
      if (line.waiters.size <= 1 && !line.isAsking) schedule(keyId, line);
      return settled.promise;
    },
    ended(keyId, durationMs) {
      const before = durations.get(keyId) ?? durationMs;
      durations.set(keyId, before + weight * (durationMs - before));
      const line = lines.get(keyId);
      if (line === undefined) return;
      line.freed += 1;
      void askAll(keyId, line, line.freed);
    },
    isWaiting: (keyId) => lines.has(keyId),
    durationOf: (keyId) => durations.get(keyId),
  };
}

/** No more of them than there can be places. */
function mostOf({ waiters }: Line): number {
  const [first] = waiters;
  return Math.min(maxInBatch, first?.places ?? maxInBatch);
}
