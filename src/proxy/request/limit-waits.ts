import { type Admission, isWorthWaiting, lacksPlace, shortWaitMs } from "../../domain/admissions.ts";
import type { KeyId } from "../../domain/keys.ts";
import type { MonotonicClock } from "../../time/clock.ts";

/** @param mayWait a refusal after which the request asks again does not count */
export type AskLimits = (mayWait: boolean) => Admission | Promise<Admission>;

export interface RequestOfKey {
  keyId: KeyId;
  /** How many of the key may be in flight; null: any number. */
  maxConcurrency: number | null;
  ask: AskLimits;
}

/**
 * The requests of keys that wait until their limits admit them. Those of a key ask again together, in one batch, at random
 * moments and whenever a request of the key ends in this process; but for some of these, after which others may ask first.
 */
export interface LimitWaits {
  /**
   * Asks again until the request is admitted, or refused for longer than it may wait.
   * @param refused how the limits answered before; undefined if they were not asked
   * @param signal the request no longer waits: it leaves at once, and an admission that comes later is cancelled
   */
  wait(request: RequestOfKey, refused: Admission | undefined, signal: AbortSignal): Promise<Admission>;
  /** Whether requests of the key wait here under the same limit of concurrency: those that arrive line up behind them. */
  isWaiting(keyId: KeyId, maxConcurrency: number | null): boolean;
  /** A request of the key has ended, and had taken so long. */
  ended(keyId: KeyId, durationMs: number): void;
  /** How long requests of the key take, of late; undefined if none has ended here. */
  durationOf(keyId: KeyId): number | undefined;
}

export interface LimitWaitsOptions {
  monotonic: MonotonicClock;
  timeoutMs: number;
  /** Whether requests of the same keys may wait in other processes. */
  hasOthers: () => boolean;
}

interface Waiter extends Pick<RequestOfKey, "ask"> {
  until: number;
  /** While it waits for a limit other than of concurrency. */
  shortUntil: number;
  decided: PromiseWithResolvers<Admission>;
}

/** The requests of a key that wait here, oldest first. */
interface Line {
  waiters: Set<Waiter>;
  /** The limit that the newest of them came under. */
  maxConcurrency: number | null;
  timer: Timer | undefined;
  isAsking: boolean;
  /** How many of the key have ended since it last asked. */
  freed: number;
}

/** Between two times of asking: instances that share a key must not all ask at once. */
const [minPauseMs, maxPauseMs] = [50, 250];
const maxInBatch = 64;
/** On average each place is left to others so often: while one process takes it again at once, none of them finds it free. */
const placeLeftEveryMs = 2000;
const placeLeftForMs = 100;
/** How much the last request changes the duration that is expected of the next. */
const weight = 0.2;

export function createLimitWaits({ monotonic, timeoutMs, hasOthers }: LimitWaitsOptions): LimitWaits {
  const lines = new Map<KeyId, Line>();
  const durations = new Map<KeyId, number>();

  /** @param most of those whose time is not over */
  async function askAll(keyId: KeyId, line: Line, most: number): Promise<void> {
    if (line.isAsking) return;
    line.isAsking = true;
    line.freed = 0;
    clearTimeout(line.timer);
    const now = monotonic();
    const asking = [...line.waiters].filter((waiter, index) => index < most || deadlineOf(waiter) <= now);
    await Promise.all(asking.map((waiter) => askFor(waiter, line.waiters, monotonic)));
    line.isAsking = false;
    if (line.freed > 0) return askAll(keyId, line, line.freed);
    schedule(keyId, line);
  }

  function schedule(keyId: KeyId, line: Line, leastMs = minPauseMs): void {
    clearTimeout(line.timer);
    if (line.waiters.size === 0) return void lines.delete(keyId);
    const pause = leastMs + Math.random() * (maxPauseMs - leastMs);
    const nextDeadline = line.waiters.values().reduce((first, one) => Math.min(first, deadlineOf(one)), Infinity);
    const most = Math.min(maxInBatch, line.maxConcurrency ?? maxInBatch);
    const waitMs = Math.min(pause, Math.max(0, nextDeadline - monotonic()));
    line.timer = setTimeout(() => void askAll(keyId, line, most), waitMs);
  }

  function freed(keyId: KeyId, line: Line): void {
    line.freed += 1;
    void askAll(keyId, line, line.freed);
  }

  function leavePlace(keyId: KeyId, line: Line): void {
    schedule(keyId, line, placeLeftForMs);
    setTimeout(() => {
      if (lines.get(keyId) === line) freed(keyId, line);
    }, placeLeftForMs);
  }

  function lineOf(keyId: KeyId): Line {
    const line = lines.get(keyId) ?? newLine();
    lines.set(keyId, line);
    return line;
  }

  return {
    async wait({ keyId, maxConcurrency, ask }, refused, signal) {
      const line = lineOf(keyId);
      const decided = Promise.withResolvers<Admission>();
      const now = monotonic();
      const waiter: Waiter = { ask, until: now + timeoutMs, shortUntil: Infinity, decided };
      if (refused !== undefined) noteReason(waiter, refused, now);
      line.waiters.add(waiter);
      line.maxConcurrency = maxConcurrency;
      signal.addEventListener("abort", () => {
        line.waiters.delete(waiter);
        if (line.waiters.size === 0 && !line.isAsking) schedule(keyId, line);
      });
      if (signal.aborted) line.waiters.delete(waiter);
      if (line.waiters.size <= 1 && !line.isAsking) schedule(keyId, line);
      return decided.promise;
    },
    ended(keyId, durationMs) {
      const before = durations.get(keyId) ?? durationMs;
      durations.set(keyId, before + weight * (durationMs - before));
      const line = lines.get(keyId);
      if (line !== undefined) (leavesPlace(line, durationMs) && hasOthers() ? leavePlace : freed)(keyId, line);
    },
    isWaiting: (keyId, maxConcurrency) => lines.get(keyId)?.maxConcurrency === maxConcurrency,
    durationOf: (keyId) => durations.get(keyId),
  };
}

const newLine = (): Line => ({
  waiters: new Set(),
  maxConcurrency: null,
  timer: undefined,
  isAsking: false,
  freed: 0,
});

/** @param durationMs how long the place was used */
const leavesPlace = ({ maxConcurrency }: Line, durationMs: number): boolean =>
  maxConcurrency !== null && Math.random() * placeLeftEveryMs < durationMs;

const deadlineOf = ({ until, shortUntil }: Waiter): number => Math.min(until, shortUntil);

function noteReason(waiter: Waiter, answer: Admission, now: number): void {
  if (lacksPlace(answer)) waiter.shortUntil = Infinity;
  else if (waiter.shortUntil === Infinity) waiter.shortUntil = now + shortWaitMs;
}

/** @param waiters those that have not left meanwhile */
async function askFor(waiter: Waiter, waiters: Set<Waiter>, monotonic: MonotonicClock): Promise<void> {
  const isLast = monotonic() >= deadlineOf(waiter);
  try {
    const admission = await waiter.ask(!isLast);
    const isRefused = admission.refusedBy !== undefined;
    if (!waiters.has(waiter)) return isRefused ? undefined : admission.cancel();
    noteReason(waiter, admission, monotonic());
    if (isRefused && !isLast && isWorthWaiting(admission)) return;
    waiter.decided.resolve(admission);
  } catch (error) {
    waiter.decided.reject(error);
  }
  waiters.delete(waiter);
}
