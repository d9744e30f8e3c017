// The budget for request bodies that are held in memory to be rewritten.
//
//   opened -> arriving -> whole, or passed on -> released
//                      -> ended, because it is too slow, or the slowest where room is needed: it holds nothing then
//
// A body that comes too slowly ends with `request_timeout`; the least pace is higher while much is held (`look`). The budget
// is taken as bytes arrive, at most `aheadBytes` ahead: what is only announced is open to others. The last quarter is for the
// first body of a key that holds nothing, so that a few keys cannot lock out the others.

import { ProxyError } from "../errors.ts";
import type { KeyId } from "../../domain/keys.ts";
import type { MonotonicClock } from "../../time/clock.ts";

/** The budget, with all bodies that it is for. */
export class HeldBytes {
  total = 0;
  readonly byKey = new Map<KeyId, number>();
  /** In no order. */
  readonly arriving: HeldShare[] = [];
  /** One for all bodies; undefined while none arrives. */
  timer: Timer | undefined;

  /** @param maxBytesPerKey so that one key leaves room for the others */
  constructor(
    readonly maxBytes: number,
    readonly maxBytesPerKey: number,
    readonly monotonic: MonotonicClock,
  ) {}
}

const aheadBytes = 1024 * 1024;
/** How often paces are looked at, and over how long they are measured. */
const [tickMs, windowMs] = [5000, 30_000];
/** A younger body makes no room for others. */
const youngMs = 10_000;
/** The least pace in bytes per second, and that while more than half of the budget is used. */
const [leastPace, leastPaceWhenUsed] = [2000, 64 * 1024];

/** A share of the budget for the body of one request. */
export class HeldShare implements Disposable {
  readonly keyId: KeyId;
  /** Its key held nothing when it began. */
  isFirst = false;
  /** Undefined if it is not declared. */
  length: number | undefined;
  takenBytes = 0;
  arrivedBytes = 0;
  begunAt = 0;
  /** How much had arrived at each of the last ticks, as many as are in a window. */
  readonly marks: number[] = [];
  onEnded: ((error: ProxyError) => void) | undefined;
  /** Its index among those that arrive; -1: it does not. */
  at = -1;
  readonly #budget: HeldBytes;

  constructor(budget: HeldBytes, keyId: KeyId) {
    this.#budget = budget;
    this.keyId = keyId;
  }

  /**
   * The body begins to arrive.
   * @param length undefined if it is not declared
   * @param onEnded called if it is given up while it arrives
   * @throws ProxyError if it would not fit beside what has arrived of others
   */
  begin(length: number | undefined, onEnded: (error: ProxyError) => void): void {
    const budget = this.#budget;
    if (length !== undefined) {
      this.isFirst = !budget.byKey.has(this.keyId);
      const exceeds = findExceeded(budget, this, length) && findExceeded(budget, this, length, false);
      if (exceeds !== undefined) throw new ProxyError("too_many_bytes_held");
      this.take(Math.min(length, aheadBytes));
    }
    this.at = budget.arriving.push(this) - 1;
    this.length = length;
    this.onEnded = onEnded;
    this.begunAt = budget.monotonic();
    budget.timer ??= setInterval(() => look(budget), tickMs).unref();
  }

  /** More of it has arrived; at its begin all of it, if it is read in one go. @throws ProxyError as `take` */
  arrived(bytes: number): void {
    this.arrivedBytes += bytes;
    const { length = this.arrivedBytes, takenBytes } = this;
    const missing = this.arrivedBytes - takenBytes;
    if (missing > 0) this.take(Math.max(missing, Math.min(length - takenBytes, aheadBytes)));
  }

  /** Takes more; if there is no room, the slowest make it. @throws ProxyError, taking nothing, if the budget is used up */
  take(bytes: number): void {
    const budget = this.#budget;
    if (this.takenBytes === 0) this.isFirst = !budget.byKey.has(this.keyId);
    for (;;) {
      const exceeded = findExceeded(budget, this, bytes);
      if (exceeded === undefined) return add(budget, this, bytes);
      const slowest = findSlowest(budget, this, exceeded === "key's");
      if (slowest === undefined || slowest === this) throw new ProxyError("too_many_bytes_held");
      end(slowest, "too_many_bytes_held");
    }
  }

  /** No more of it is to arrive. @param kept how much of it is held on */
  release(kept = 0): void {
    const { arriving } = this.#budget;
    const last = this.at === -1 ? undefined : arriving.pop();
    if (last !== undefined && last !== this) {
      arriving[this.at] = last;
      last.at = this.at;
    }
    this.at = -1;
    if (kept < this.takenBytes) add(this.#budget, this, kept - this.takenBytes);
  }

  [Symbol.dispose](): void {
    this.release();
  }
}

function add(budget: HeldBytes, body: HeldShare, bytes: number): void {
  const ofKey = (budget.byKey.get(body.keyId) ?? 0) + bytes;
  budget.total += bytes;
  body.takenBytes += bytes;
  if (ofKey > 0) budget.byKey.set(body.keyId, ofKey);
  else budget.byKey.delete(body.keyId);
}

/** Which part of the budget so many bytes more would exceed. @param withAhead what is taken and has not arrived counts too */
function findExceeded(
  budget: HeldBytes,
  { keyId, isFirst }: HeldShare,
  bytes: number,
  withAhead = true,
): "key's" | "whole" | undefined {
  const { maxBytes, maxBytesPerKey, total, byKey } = budget;
  const [aheadOfKey, ahead] = withAhead ? [0, 0] : [aheadOf(budget, keyId), aheadOf(budget)];
  if ((byKey.get(keyId) ?? 0) - aheadOfKey + bytes > maxBytesPerKey) return "key's";
  return total - ahead + bytes > (isFirst ? maxBytes : maxBytes * 0.75) ? "whole" : undefined;
}

const aheadOf = ({ arriving }: HeldBytes, keyId?: KeyId): number =>
  arriving.reduce(
    (sum, one) => ((keyId ?? one.keyId) === one.keyId ? sum + one.takenBytes - one.arrivedBytes : sum),
    0,
  );

/** The youngest of equals. The first body of a key makes room for those of others alone. */
function findSlowest(
  { arriving, monotonic }: HeldBytes,
  { keyId, isFirst }: HeldShare,
  isOfKey: boolean,
): HeldShare | undefined {
  const now = monotonic();
  const makesRoom = (one: HeldShare): boolean =>
    one.takenBytes > 0 &&
    now - one.begunAt >= youngMs &&
    (!isOfKey || one.keyId === keyId) &&
    (isFirst || !one.isFirst);
  const slower = (a: HeldShare, b: HeldShare): number => paceOf(a, now) - paceOf(b, now) || b.begunAt - a.begunAt;
  return arriving.filter(makesRoom).toSorted(slower)[0];
}

function end(body: HeldShare, code: "too_many_bytes_held" | "request_timeout"): void {
  body.release();
  body.onEnded?.(new ProxyError(code));
}

function look(budget: HeldBytes): void {
  const now = budget.monotonic();
  // A copy, as those that end leave.
  for (const body of budget.arriving.slice()) {
    const least = budget.total > budget.maxBytes / 2 ? leastPaceWhenUsed : leastPace;
    if (now - body.begunAt >= windowMs && paceOf(body, now) < least) end(body, "request_timeout");
    body.marks.push(body.arrivedBytes);
    if (body.marks.length > windowMs / tickMs) body.marks.shift();
  }
  if (budget.arriving.length > 0) return;
  clearInterval(budget.timer);
  budget.timer = undefined;
}

/** In bytes per second, over the last window at most. */
function paceOf({ length, arrivedBytes, begunAt, marks }: HeldShare, now: number): number {
  const age = now - begunAt;
  // Of a body that is read in one go, this is the most that it can be.
  if (arrivedBytes === length) return (arrivedBytes / age) * 1000;
  const [before = 0] = marks.length < windowMs / tickMs ? [] : marks;
  return ((arrivedBytes - before) / Math.min(age, windowMs)) * 1000;
}
