// How a request waits: until the limits of its key admit it, and for a place at a backend. One object with one state.
//
//   asking  -> placing: admitted | placed: and it needs no place | inLine: refused, and worth waiting | left: refused
//   inLine  -> asking: the line of its key wakes it
//   placing -> placed | asking: it comes to its place without an admission
//   placed  -> placing: it moves on to another backend, and keeps its admission
//   any     -> left: `end` says why; `leave` when the request is over
//
// It keeps true: a place and an admission are given back once, in this order, whatever ends the request and when; one that
// comes after that is given back at once. While none of its backends is in, a request takes nothing from its key. What is
// there at once is had without a promise. It knows neither bodies nor other processes: `Admit` and `Places` do.
//
// Removed: one list for both kinds of waiting over all processes; an object for each thing that is waited for, which raced.

import { createBackoff, type Backoff } from "../time/wait.ts";
import type { WallClock } from "../time/clock.ts";
import { ProxyError } from "./errors.ts";
import { type InLine, KeyLines, type KeyLinesOptions } from "./key-lines.ts";
import { limitRefusal } from "./request/limit-refusals.ts";
import type { BodyStep } from "./request/body.ts";
import { clientLeft, revoked, stopped } from "./upstream/abort-reason.ts";
import {
  type Admission,
  type Admit,
  type Destination,
  type Entry,
  isChoice,
  isWorthWaiting,
  lacksPlace,
  type Place,
  type PlaceListener,
  type Places,
  type Reservation,
  shortWaitMs,
} from "../domain/admissions.ts";
import { type BackendSign, type Choice, noConversation } from "../domain/backends.ts";
import { isOf, type KeyId, type Subject, type SubjectId, type UserId } from "../domain/keys.ts";
import { anyHasLimit, placeLimits, type Priority, requestLimits } from "../domain/limits.ts";
import type { WaitedFor } from "../domain/requests.ts";
import type { CountedFor, ReportedInput } from "../domain/usage.ts";

export interface RequestQueueOptions extends KeyLinesOptions {
  places: Places;
  /** Whether requests of keys without limits wait too: they may have to, or there is a choice. */
  hasPlaces: boolean;
  admit: Admit;
  /** How long a request waits for a place; 0: not at all. */
  timeoutMs: number;
  /** The same of low priority. */
  lowTimeoutMs: number;
  /** How long it waits until a backend is in; 0: not at all. */
  backendWaitMs: number;
  wall: WallClock;
  /** Fires when the program no longer waits for requests. */
  stopping: AbortSignal;
  /** Registers what runs when the requests of a key or user are to end that had begun until then, by the monotonic clock. */
  onKeyEnded: (listener: (id: SubjectId, begunUntil: number) => void) => void;
}

/** Who waits. */
interface Asker extends CountedFor {
  /** Whose limits hold for it; undefined if there are none. */
  subjects: readonly Subject[] | undefined;
  /** The URL's pathname. */
  path: string;
  /** When it arrived, by the monotonic clock. */
  startedAt: number;
  /** Fires when the client leaves. */
  client: AbortSignal;
  /** That of its key; its body may lower it. */
  priority?: Priority | undefined;
}

/** All that wait in this process, whatever for. */
export class RequestQueue {
  hasPlaces: boolean;
  readonly lines: KeyLines;
  /** Requests of low priority displace nobody, and nobody displaces them. */
  readonly lowLines: KeyLines;
  /** Those that have a promise. */
  readonly pending = new Set<Wait>();
  running = 0;

  constructor(readonly options: RequestQueueOptions) {
    this.hasPlaces = options.hasPlaces;
    this.lines = new KeyLines(options);
    this.lowLines = new KeyLines(options);
    options.stopping.addEventListener("abort", () => {
      for (const one of this.pending) one.end(stopped());
    });
    options.onKeyEnded((id, begunUntil) => {
      for (const one of this.pending) if (isOf(id, one) && one.startedAt <= begunUntil) one.end(revoked(id));
    });
  }

  readonly depth = (): { waiting: number; running: number } => {
    const waiting = this.pending.values().reduce((count, { isWaiting }) => count + Number(isWaiting), 0);
    return { waiting, running: this.running };
  };
}

/** A request that finds no other backend connects so often at once: by then a probe has told whether that is up. */
const maxHasty = 2;
/** Between two further connections: a backend whose probes are responded to may refuse requests. */
const [firstPauseMs, longestPauseMs] = [100, 5000];

/** Before its body is read. */
const nowhere: Destination = { model: undefined, candidates: [], characters: 0, conversation: noConversation };

const isAdmitted = (admission: Admission | undefined): admission is Admission =>
  admission !== undefined && admission.refusedBy === undefined;

export class Wait implements Choice, InLine, PlaceListener {
  readonly keyId: KeyId;
  readonly userId: UserId | undefined;
  readonly startedAt: number;
  /** In whose line it waits. */
  subject: SubjectId;
  maxConcurrency: number | null = null;
  /** Where it has a place. */
  backend = "";
  reason: Choice["reason"] = "only";
  expectation: Choice["expectation"];
  lastTurn: Choice["lastTurn"];
  /** The latest answer of the limits: what it holds of its key, or why it is refused. */
  admission: Admission | undefined;
  deadline = Infinity;
  priority: Priority | undefined;
  /** It waits now; and for what it did first. */
  isWaiting = false;
  waitedFor: WaitedFor | undefined;
  /** What there is to read of it, if it waits until another long prompt was read. */
  prefillTokens: number | undefined;

  #state: "asking" | "inLine" | "placing" | "placed" | "left" = "asking";
  readonly #asker: Asker;
  readonly #queue: RequestQueue;
  #destination = nowhere;
  #reservation: Reservation | undefined;
  #needsPlace = false;
  /** In the list that all processes share; undefined: it is not in it. */
  #place: Place | undefined;
  /** Set while the caller waits. */
  #promise: PromiseWithResolvers<void> | undefined;
  #isOver = false;
  #failure: Error | undefined;
  /** It has been placed: what it holds of its key stays until it leaves. */
  #runsSince: number | undefined;

  #timer: Timer | undefined;
  #stopListening: (() => void) | undefined;
  /** Set while it is in the line of its key: until when. */
  #lineUntil: number | undefined;
  #placeUntil = 0;
  #backendUntil: number | undefined;
  #wasOut = false;

  #tried: readonly string[] = [];
  #wasRefused = false;
  #returns = 0;
  /** A backend that is in while it takes no connection would have it return for ever. */
  #returnsUntil: number | undefined;
  #pauses: Backoff | undefined;

  constructor(asker: Asker, queue: RequestQueue) {
    this.#asker = asker;
    this.#queue = queue;
    this.keyId = asker.keyId;
    this.userId = asker.userId;
    this.startedAt = asker.startedAt;
    this.subject = asker.keyId;
    this.priority = asker.priority;
  }

  /**
   * Waits until the limits admit the request, before more is done for its body, unless they are asked but once.
   * @throws ProxyError if they refuse it, or too many wait; AbortReason if it ends otherwise
   */
  askEarly(before: BodyStep): void | Promise<void> {
    const { subjects } = this.#asker;
    if (subjects === undefined || this.admission !== undefined) return undefined;
    // A body that is waited for has a place of its key; one that is decoded, or names ids, is counted too.
    const asks = before === "wait" ? placeLimits : [...placeLimits, ...requestLimits];
    return anyHasLimit(subjects, asks) ? this.#begin() : undefined;
  }

  /** Waits until the limits admit the request, and for a place at a backend. @throws as `askEarly` */
  enter(destination: Destination, reservation: Reservation | undefined): void | Promise<void> {
    const { hasPlaces, options } = this.#queue;
    const { candidates } = destination;
    this.#destination = destination;
    this.priority = destination.priority;
    this.#reservation = reservation;
    this.backend = candidates[0] ?? "";
    this.#needsPlace = hasPlaces && candidates.length > 0;
    this.#placeUntil = options.monotonic() + this.#patienceMs;
    return this.#begin();
  }

  /**
   * Gives up the place, and takes one at another candidate. Where it was sent nowhere, it waits for that, and may return to
   * one that it has been at, unless none is in and requests do not wait for backends.
   * @returns false if there is none: the request ends with what it has
   * @throws ProxyError if it has waited too long for a backend; AbortReason if it ends while it waits for the place
   */
  async moveOn(): Promise<boolean> {
    if (this.#state !== "placed" || this.#place === undefined) return false;
    this.#leavePlace();
    const { places, backendWaitMs, monotonic } = this.#queue.options;
    const hasReturned = this.#tried.includes(this.backend);
    if (!hasReturned) this.#tried = [...this.#tried, this.backend];
    const hasOther = places.isAnyIn(this.#destination.candidates.filter((name) => !this.#tried.includes(name)));
    let pauseMs = 0;
    if (!this.#wasRefused && (hasReturned || !hasOther)) {
      this.#returnsUntil ??= monotonic() + (hasOther ? this.#patienceMs : backendWaitMs);
      if (monotonic() >= this.#returnsUntil) return false;
      this.#returns += 1;
      this.#pauses ??= createBackoff(firstPauseMs, longestPauseMs);
      if (this.#returns > maxHasty) pauseMs = this.#pauses.next();
    }
    try {
      this.#enterPlaces(pauseMs);
      await this.#untilOver();
      return true;
    } catch (error) {
      // What it has heard says more.
      if (error instanceof ProxyError && error.code !== "backend_unavailable") return false;
      throw error;
    }
  }

  /** Tells those who choose of the backend that it was sent to; each kind at most once for each send. */
  report(sign: BackendSign): void {
    this.#wasRefused ||= sign.kind === "busy" || sign.kind === "failed";
    this.#place?.report(sign);
  }

  /** Where it stands in its model's line; undefined where nothing waits for backends. */
  rank(): ReturnType<Place["rank"]> {
    return this.#queue.options.backendWaitMs > 0 ? this.#place?.rank() : undefined;
  }

  /** Ends the wait; does nothing once it is over. */
  readonly end = (reason: Error): void => {
    if (this.#state === "placed" || this.#state === "left") return;
    const isRunning = this.#runsSince !== undefined;
    this.#state = isRunning ? "placed" : "left";
    this.#leavePlace();
    if (!isRunning) this.#giveBackAdmission();
    this.#over(reason);
  };

  /** Gives back what the request has, which is over. @param input see `Places` */
  leave(input?: ReportedInput): void {
    if (this.#state === "left") return;
    const { lines, lowLines, options } = this.#queue;
    this.#state = "left";
    this.#leavePlace(input);
    if (this.#runsSince === undefined) return this.#giveBackAdmission();
    this.#queue.running -= 1;
    this.admission?.end();
    const durationMs = options.monotonic() - this.#runsSince;
    for (const { id } of this.#asker.subjects ?? []) for (const one of [lines, lowLines]) one.ended(id, durationMs);
  }

  askAgain(): void | Promise<void> {
    const mayWait = this.#queue.options.monotonic() < this.deadline;
    const { lines } = this.#queue;
    // What becomes free of a subject's limits is left by a low request to normal ones that wait for it.
    const leaves = mayWait && this.priority === "low" && this.#asker.subjects?.some((one) => lines.isWaiting(one));
    return leaves ? undefined : this.#ask(mayWait);
  }

  onGranted(choice: Choice): void {
    if (this.#state !== "placing") return;
    this.#stopTimer();
    this.backend = choice.backend;
    this.reason = choice.reason;
    this.expectation = choice.expectation;
    this.lastTurn = choice.lastTurn;
    if (this.#asker.subjects === undefined || isAdmitted(this.admission)) this.#placed();
    else void this.#ask();
  }

  onDisplaced(): void {
    this.end(new ProxyError("queue_full"));
  }

  get #lines(): KeyLines {
    return this.priority === "low" ? this.#queue.lowLines : this.#queue.lines;
  }

  get #patienceMs(): number {
    const { timeoutMs, lowTimeoutMs } = this.#queue.options;
    return this.priority === "low" ? lowTimeoutMs : timeoutMs;
  }

  /** @returns undefined if there is nothing to wait for. @throws why it has left */
  #untilOver(): void | Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#isOver) return undefined;
    const { client } = this.#asker;
    this.#promise = Promise.withResolvers();
    this.#queue.pending.add(this);
    client.addEventListener("abort", this.#onClientLeft, { once: true });
    const { promise } = this.#promise;
    if (client.aborted) this.#onClientLeft();
    return promise;
  }

  readonly #onClientLeft = (): void => this.end(clientLeft());

  #over(failure?: Error): void {
    if (this.#timer !== undefined) this.#stopTimer();
    if (this.#lineUntil !== undefined) this.#leaveLine();
    this.#isOver = true;
    this.#failure = failure;
    this.isWaiting = false;
    this.prefillTokens = undefined;
    if (this.#promise === undefined) return;
    this.#queue.pending.delete(this);
    this.#asker.client.removeEventListener("abort", this.#onClientLeft);
    if (failure === undefined) this.#promise.resolve();
    else this.#promise.reject(failure);
    this.#promise = undefined;
  }

  #begin(): void | Promise<void> {
    const { subjects } = this.#asker;
    this.#isOver = this.#state === "left";
    if (this.#isOver) return this.#untilOver();
    if (this.#needsPlace && (subjects === undefined || this.#mustWaitForBackend())) this.#enterPlaces();
    else if (subjects === undefined) this.#placed();
    else if (this.admission === undefined && this.#findLine(subjects)) this.#lineUp();
    else void this.#ask();
    return this.#untilOver();
  }

  /** Whether others wait for one of its subjects: low requests line up behind normal ones too. */
  #findLine(subjects: readonly Subject[]): boolean {
    const { lines, lowLines } = this.#queue;
    for (const [at, one] of subjects.entries()) {
      if (!lines.isWaiting(one) && !(this.priority === "low" && lowLines.isWaiting(one))) continue;
      this.#waitFor(at);
      return true;
    }
    return false;
  }

  /** Leaves the line that it is in if it is that of another subject. */
  #waitFor(at: number): void {
    const subject = this.#asker.subjects?.[at];
    if (subject === undefined) return;
    if (this.#lineUntil !== undefined && subject.id !== this.subject) this.#lines.remove(this);
    this.subject = subject.id;
    this.maxConcurrency = subject.limits.max_concurrency;
  }

  /** Until one is back, no limits are asked, or asked again: what waits for it takes nothing from its key. */
  #mustWaitForBackend(): boolean {
    const { backendWaitMs, places } = this.#queue.options;
    const waits = backendWaitMs > 0 && !places.isAnyIn(this.#destination.candidates);
    if (waits) this.#giveBackAdmission();
    return waits;
  }

  /** @param mayWait a refusal after which it asks again does not count */
  #ask(mayWait = this.#patienceMs > 0): void | Promise<void> {
    const { subjects } = this.#asker;
    if (subjects === undefined) return undefined;
    this.#state = "asking";
    const { tokens = 0, leastTokens } = this.#reservation ?? {};
    const early = this.admission?.refusedBy === undefined ? this.admission : undefined;
    const answer = this.#queue.options.admit(subjects, tokens, mayWait, leastTokens, early);
    if (!(answer instanceof Promise)) return this.#answered(answer, mayWait);
    return answer.then((admission) => this.#answered(admission, mayWait), this.end);
  }

  #answered(admission: Admission, mayWait: boolean): void {
    if (this.#state !== "asking") return admission.cancel();
    this.admission = admission;
    const { refusedBy } = admission;
    if (refusedBy === undefined) {
      if (this.#needsPlace && this.#place === undefined) this.#enterPlaces();
      else this.#placed();
      return;
    }
    this.#leavePlace();
    if (mayWait && isWorthWaiting(admission)) this.#lineUp(admission);
    else this.#refuse(admission, refusedBy);
  }

  #refuse(admission: Admission, refusedBy: NonNullable<Admission["refusedBy"]>): void {
    const { subjects = [], path } = this.#asker;
    const { options } = this.#queue;
    // A place becomes free when a request of the subject ends: none did while this one waited.
    const placeWaitMs =
      this.#lines.durationOf(subjects[admission.at]?.id ?? this.subject) ??
      Math.max(admission.waitMs, options.timeoutMs);
    const refused = lacksPlace(admission) ? { ...admission, waitMs: placeWaitMs } : admission;
    this.#state = "left";
    this.#over(
      limitRefusal(refusedBy, subjects, refused, { path, reservation: this.#reservation, now: options.wall() }),
    );
  }

  /** @param refused how the limits answered; undefined: it comes behind others of its key */
  #lineUp(refused?: Admission): void {
    const { monotonic } = this.#queue.options;
    const isForWindow = refused !== undefined && !lacksPlace(refused);
    const isNew = this.#lineUntil === undefined;
    if (isNew && this.#needsPlace && this.#mustWaitForBackend()) return this.#enterPlaces();
    if (refused !== undefined) this.#waitFor(refused.at);
    const until = (this.#lineUntil ??= monotonic() + this.#patienceMs);
    if (isNew || !isForWindow) this.deadline = until;
    if (isForWindow && this.deadline === until) this.deadline = Math.min(until, monotonic() + shortWaitMs);
    this.#state = "inLine";
    if (this.#lines.add(this)) this.#list("limits");
    // Such a refusal tells its client more than a full line does.
    else if (isForWindow) void this.#ask(false);
    else this.end(new ProxyError("queue_full"));
    return undefined;
  }

  #leaveLine(): void {
    this.#lines.remove(this);
    this.#lineUntil = undefined;
  }

  #list(waitsFor: WaitedFor): void {
    this.isWaiting = true;
    this.waitedFor ??= waitsFor;
  }

  #enterPlaces(pauseMs = 0): void {
    if (this.#lineUntil !== undefined) this.#leaveLine();
    this.#list("backend");
    this.#isOver = false;
    this.#state = "placing";
    if (pauseMs > 0) this.#timer = setTimeout(() => this.#askForPlace(), pauseMs);
    else this.#askForPlace();
  }

  #askForPlace(): void {
    const { keyId, teamId, userId } = this.#asker;
    const waits = !this.#wasRefused && (this.#patienceMs > 0 || this.#queue.options.backendWaitMs > 0);
    const request = { keyId, teamId, userId, ...this.#destination, waits, tried: this.#tried };
    const place = this.#queue.options.places.enter(request, this);
    this.#place = place;
    const { entry } = place;
    if (entry instanceof Promise) void entry.then((found) => this.#entered(place, found));
    else this.#entered(place, entry);
  }

  #entered(place: Place, entry: Entry): void {
    if (this.#state !== "placing" || place !== this.#place) return undefined;
    if (entry === "full") return this.end(new ProxyError("queue_full"));
    if (isChoice(entry)) return this.onGranted(entry);
    if (entry !== "waiting") {
      this.prefillTokens = entry.prefillTokens;
      if (this.waitedFor === "backend") this.waitedFor = "prefill";
    }
    this.#look();
    this.#stopListening = this.#queue.options.places.onChanged(() => this.#look());
    return undefined;
  }

  /** Its patience ends at one time where a backend of the model is in, and at another where none is. */
  #look(): void {
    clearTimeout(this.#timer);
    const { places, backendWaitMs, monotonic } = this.#queue.options;
    const now = monotonic();
    const isOut = !places.isAnyIn(this.#destination.candidates);
    if (isOut) this.#backendUntil ??= now + backendWaitMs;
    else if (this.#wasOut) this.#placeUntil = Math.max(this.#placeUntil, now + this.#patienceMs);
    this.#wasOut = isOut;
    if (isOut && this.#runsSince === undefined) this.#giveBackAdmission();
    // Those that have waited for a backend come to it one by one.
    const until = isOut ? (this.#backendUntil ?? now) : Math.max(this.#placeUntil, this.#backendUntil ?? 0);
    const tooLate = (): void => this.end(new ProxyError(isOut ? "backend_unavailable" : "queue_timeout"));
    this.#timer = setTimeout(tooLate, Math.max(0, until - now));
  }

  #stopTimer(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#stopListening?.();
    this.#stopListening = undefined;
  }

  #placed(): void {
    if (this.#destination === nowhere) {
      this.#state = "asking";
    } else {
      this.#state = "placed";
      this.#queue.running += Number(this.#runsSince === undefined);
      this.#runsSince ??= this.#queue.options.monotonic();
    }
    this.#over();
  }

  #leavePlace(input?: ReportedInput): void {
    const place = this.#place;
    this.#place = undefined;
    place?.leave(input);
  }

  #giveBackAdmission(): void {
    this.admission?.cancel();
    this.admission = undefined;
  }
}
