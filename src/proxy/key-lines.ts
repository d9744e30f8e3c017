import type { Subject, SubjectId } from "../domain/keys.ts";
import type { MonotonicClock } from "../time/clock.ts";
import { ProxyError } from "./errors.ts";

/** A request that waits until the limits of its key and team admit it. */
export interface InLine {
  /** Whose line it waits in: whose limit refused it. */
  subject: SubjectId;
  /** How many of these may be in flight; null: any number. */
  maxConcurrency: number | null;
  /** When it asks for the last time, by the monotonic clock. */
  deadline: number;
  /** Asks its limits again. Once they admit it, or it waits no longer, it leaves the line. */
  askAgain(): void | Promise<void>;
  end(reason: ProxyError): void;
}

export interface KeyLinesOptions {
  monotonic: MonotonicClock;
  /** How many may wait for the limits of their keys in this process. */
  maxInLine: number;
  /** Whether requests of the same keys may wait in other processes. */
  hasOthers: () => boolean;
}

type Line = ReturnType<typeof newLine>;

/** Between two times of asking: instances that share a key must not all ask at once. */
const [minPauseMs, maxPauseMs] = [50, 250];
const maxInBatch = 64;
/** On average each place is left to others so often: while one process takes it again at once, none of them finds it free. */
const placeLeftEveryMs = 2000;
const placeLeftForMs = 100;
/** How much the last request changes the duration that is expected of the next. */
const weight = 0.2;

/**
 * The requests that wait until the limits of their keys and teams admit them. Those of one subject ask again together, in one
 * batch, at random moments and whenever a request of the subject ends in this process; but for some of these, after which others may ask first.
 */
export class KeyLines {
  readonly #options: KeyLinesOptions;
  readonly #lines = new Map<SubjectId, Line>();
  readonly #durations = new Map<SubjectId, number>();
  #size = 0;

  constructor(options: KeyLinesOptions) {
    this.#options = options;
  }

  /** Does nothing if it is in the line. @returns false if too many wait */
  add(one: InLine): boolean {
    const { subject, maxConcurrency } = one;
    const line = this.#lines.get(subject) ?? newLine(subject);
    if (line.waits.has(one)) return true;
    if (this.#size >= this.#options.maxInLine && !this.#makeRoomFor(line)) return false;
    this.#lines.set(subject, line);
    line.waits.add(one);
    this.#size += 1;
    line.maxConcurrency = maxConcurrency;
    if (line.waits.size === 1 && !line.isAsking) this.#schedule(line);
    return true;
  }

  remove(one: InLine): void {
    const line = this.#lines.get(one.subject);
    if (line?.waits.delete(one) !== true) return;
    this.#size -= 1;
    if (line.waits.size === 0 && !line.isAsking) this.#schedule(line);
  }

  /** Whether requests of the subject wait here under the same limit of concurrency: those that arrive line up behind them. */
  isWaiting({ id, limits }: Subject): boolean {
    return this.#lines.get(id)?.maxConcurrency === limits.max_concurrency;
  }

  /** A request of the subject has ended, and had taken so long. */
  ended(subject: SubjectId, durationMs: number): void {
    const before = this.#durations.get(subject) ?? durationMs;
    this.#durations.set(subject, before + weight * (durationMs - before));
    const line = this.#lines.get(subject);
    if (line === undefined) return;
    if (!leavesPlace(line, durationMs) || !this.#options.hasOthers()) return this.#freed(line);
    this.#schedule(line, placeLeftForMs);
    setTimeout(() => {
      if (this.#lines.get(subject) === line) this.#freed(line);
    }, placeLeftForMs);
  }

  /** How long requests of the subject take, of late; undefined if none has ended here. */
  durationOf(subject: SubjectId): number | undefined {
    return this.#durations.get(subject);
  }

  /** The longest line loses its newest, so no key can keep the others out. */
  #makeRoomFor(line: Line): boolean {
    const lines = this.#lines.values();
    const longest = lines.reduce((most, one) => (one.waits.size > most.waits.size ? one : most), line);
    if (longest.waits.size <= line.waits.size + 1) return false;
    [...longest.waits].at(-1)?.end(new ProxyError("queue_full"));
    return true;
  }

  #freed(line: Line): void {
    line.freed += 1;
    void this.#askAll(line, line.freed);
  }

  /** @param most of those whose time is not over */
  async #askAll(line: Line, most: number): Promise<void> {
    if (line.isAsking) return;
    line.isAsking = true;
    line.freed = 0;
    clearTimeout(line.timer);
    const now = this.#options.monotonic();
    const asking = [...line.waits].filter(({ deadline }, index) => index < most || deadline <= now);
    await Promise.all(asking.map(async (one) => one.askAgain()));
    line.isAsking = false;
    if (line.freed > 0) return this.#askAll(line, line.freed);
    this.#schedule(line);
  }

  #schedule(line: Line, leastMs = minPauseMs): void {
    clearTimeout(line.timer);
    if (line.waits.size === 0) return void this.#lines.delete(line.subject);
    const pause = leastMs + Math.random() * (maxPauseMs - leastMs);
    const nextDeadline = line.waits.values().reduce((first, { deadline }) => Math.min(first, deadline), Infinity);
    const most = Math.min(maxInBatch, line.maxConcurrency ?? maxInBatch);
    const waitMs = Math.min(pause, Math.max(0, nextDeadline - this.#options.monotonic()));
    line.timer = setTimeout(() => void this.#askAll(line, most), waitMs);
  }
}

/** The requests that wait here for one subject, oldest first. */
const newLine = (subject: SubjectId) => ({
  subject,
  waits: new Set<InLine>(),
  /** The limit that the newest of them came under. */
  maxConcurrency: null as number | null,
  timer: undefined as Timer | undefined,
  isAsking: false,
  /** How many of the subject have ended since it last asked. */
  freed: 0,
});

/** @param durationMs how long the place was used */
const leavesPlace = ({ maxConcurrency }: Line, durationMs: number): boolean =>
  maxConcurrency !== null && Math.random() * placeLeftEveryMs < durationMs;
