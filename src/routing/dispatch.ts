// Who waits, who has a place at which backend, and what is known of backends: one for each machine.
//
//   request: waiting -> placed -> left; refused if too many wait; displaced to make room for one of another key
//   backend: in -> suspect -> out -> in, warming up; beside these busy for a while, or draining
//
// It keeps true: the backend is chosen when the place is granted (`choice.ts`), so that none waits for one backend
// while another has room. A free place goes by priority, then by turns (`fair-queue.ts`). Signs of
// requests make a backend suspect; only a probe takes it out, and brings it back (`health-rules.ts`).
// All of it is in memory: a new process takes every backend for in and knows no conversation. It knows sizes and hashes
// of bodies alone, no limits of keys, and no other process; what asks a backend is an argument.

import {
  type Entry,
  isChoice,
  type ListedRequest,
  type Place,
  type PlaceListener,
  type Places,
  type Rank,
} from "../domain/admissions.ts";
import type { BackendSign, BackendStates, BackendStatus, Choice } from "../domain/backends.ts";
import { type Affinity, affinityOf, createAffinity, nothingKnown } from "./affinity.ts";
import type { MemorySize } from "./memory.ts";
import { type BackendTable, type BackendTableOptions, createBackendTable, noLoad } from "./backend-table.ts";
import type { Load } from "./choice.ts";
import type { ReportedInput } from "../domain/usage.ts";
import type { MonotonicClock } from "../time/clock.ts";
import { subjectOf } from "../domain/keys.ts";
import { createFairQueue, type TurnOf } from "./fair-queue.ts";

export type Dispatch = ReturnType<typeof createDispatch>;

interface DispatchOptions extends Omit<BackendTableOptions, "onFreed" | "onChanged" | "onOut"> {
  maxWaiting: number;
  /** Called when other backends than before take no requests. */
  onChanged: (shut: string[]) => void;
}

export function createDispatch(options: DispatchOptions) {
  const affinity = createAffinity(memorySize);
  const table = createBackendTable({
    ...options,
    onFreed: () => queue.grant(),
    onChanged() {
      const before = shut.join("\n");
      shut = table.shut();
      if (shut.join("\n") !== before) options.onChanged(shut);
    },
    onOut: affinity.forget,
  });
  let shut: string[] = [];
  const queue = createFairQueue<Held>({
    maxWaiting: options.maxWaiting,
    groupOf: (held) => held.group(),
    findPlace: (held) => held.find(),
    onGranted(held, choice) {
      held.take(choice);
      held.listener.onGranted(choice);
    },
    onDisplaced: ({ listener }) => listener.onDisplaced(),
  });
  const parts: Parts = { affinity, table, queue };

  return {
    enter: (request: ListedRequest, listener: PlaceListener) => new Held(request, listener, parts),
    list(): BackendStatus[] {
      const waiting = queue.waiting();
      return table.list().map((row) => {
        const own = waiting.filter(({ request }) => request.candidates.includes(row.name));
        const held = own.filter((one) => one.prefillAt([row.name])?.isHeld === true);
        return Object.assign(row, { waiting: own.length, waitingForPrefill: held.length });
      });
    },
    setDraining: table.setDraining,
    /** What the backend had cached is gone. Several processes tell of the same restart. */
    hasRestarted: oncePerRestart(affinity.forget, options.monotonic),
    /** The backends that take no requests now. */
    shut: table.shut,
    [Symbol.dispose]: table[Symbol.dispose],
  };
}

/** What all requests share. */
interface Parts {
  affinity: Affinity;
  table: BackendTable;
  queue: ReturnType<typeof createFairQueue<Held>>;
}

/** Replaced where a request gets a place. */
const nowhere: Load = noLoad();

/** One object for all that is known of a request: no Map has an entry of it, unless it waits. */
class Held implements Place {
  readonly entry: Entry;
  /** Where it has a place. */
  backend: string | undefined;
  load = nowhere;
  isGiant = false;
  hasResponded = false;
  hasBegun = false;
  #work = nothingKnown;
  #lineName: string | undefined;
  #prefill: ReturnType<BackendTable["prefillOf"]>;

  constructor(
    readonly request: ListedRequest,
    readonly listener: PlaceListener,
    readonly parts: Parts,
  ) {
    const entry = parts.queue.enter(this, turnOf(request), request.waits);
    if (isChoice(entry)) this.take(entry);
    this.entry =
      entry === "waiting" && this.#prefill?.isHeld ? { prefillTokens: Math.ceil(this.#prefill.tokens) } : entry;
  }

  /** Prompts of about a size are alike: while one cannot be read, those of other sizes may. */
  group(): { group: string; isUrgent: boolean } {
    const { candidates, tried } = this.request;
    this.#prefill = this.prefillAt(candidates);
    const { isGiant = false, tokens = 1 } = this.#prefill ?? {};
    return { group: JSON.stringify([candidates, tried, Math.ceil(Math.log2(tokens))]), isUrgent: isGiant };
  }

  prefillAt(backends: readonly string[]): ReturnType<BackendTable["prefillOf"]> {
    return this.parts.table.prefillOf(backends, { workAt: this.parts.affinity.expect(this.request) });
  }

  /** What the backend has to read of it. */
  get tokens(): number {
    return this.#work.tokens;
  }

  find(): Choice | undefined {
    const { request } = this;
    const { affinity, table } = this.parts;
    const workAt = affinity.expect(request);
    const choice = table.findPlace(request.candidates, {
      affinity: affinityOf(request.keyId, request.conversation),
      tried: request.tried,
      mayReturn: request.waits,
      workAt,
      tokens: affinity.tokensOf(request),
    });
    if (choice === undefined) return undefined;
    this.#work = workAt(choice.backend);
    return Object.assign(choice, { lastTurn: affinity.lastTurn(request, choice.backend) });
  }

  take({ backend }: Choice): void {
    this.backend = backend;
    const { load, isGiant } = this.parts.table.take(backend, this.tokens);
    this.load = load;
    this.isGiant = isGiant;
  }

  report(sign: BackendSign): void {
    if (this.backend === undefined) return;
    if (sign.kind !== "begun") {
      this.hasResponded = sign.kind === "responded";
      this.parts.table.note(this.backend, sign);
      // A failure has bytes too, and they say nothing for the backend.
    } else if (this.hasResponded) this.#begin(this.backend);
  }

  /** Only now has the backend read the request: a burst of equal ones would all follow the first, and wait for it. */
  #begin(backend: string): void {
    if (this.hasBegun) return;
    this.hasBegun = true;
    this.parts.affinity.remember(backend, this.request);
    this.parts.table.begin(backend, this);
    this.#letOthersRead();
  }

  /** Whoever waits until this prompt was read. */
  #letOthersRead(): void {
    if (this.isGiant || this.load.giantTokens > 0) this.parts.queue.grant();
  }

  leave(input?: ReportedInput): void {
    const { backend, request } = this;
    const { affinity, table, queue } = this.parts;
    if (backend === undefined) return queue.leave(this);
    if (input !== undefined) affinity.learn(backend, request, this.#work.readBefore, input);
    if (this.hasResponded) {
      // It ended well without a byte.
      this.#begin(backend);
      table.note(backend, { kind: "ended" });
    }
    this.backend = undefined;
    table.giveBack(backend, this);
    queue.end(turnOf(request));
    this.#letOthersRead();
  }

  /** All of a thousand that wait ask once between two heartbeats, which takes 10 to 25 ms. */
  rank(): Rank | undefined {
    const line = this.parts.queue.waiting().filter((one) => one.#line === this.#line);
    const at = line.indexOf(this);
    return at === -1 ? undefined : { position: at + 1, length: line.length };
  }

  /** There is one for each model; what names none waits with what has the same backends. */
  get #line(): string {
    return (this.#lineName ??= this.request.model ?? JSON.stringify(this.request.candidates));
  }
}

/** A few megabytes. */
const memorySize: MemorySize = { entries: 100_000, perOwner: 25_000 };

/** In this time every process has read the counters of a backend. */
const sameRestartMs = 60_000;

function oncePerRestart(forget: (name: string) => void, monotonic: MonotonicClock): (name: string) => void {
  const toldAt = new Map<string, number>();
  return (name) => {
    const now = monotonic();
    if (now - (toldAt.get(name) ?? -Infinity) < sameRestartMs) return;
    toldAt.set(name, now);
    forget(name);
  };
}

function turnOf({ keyId, teamId, userId, priority }: ListedRequest): TurnOf {
  const own = userId === undefined ? keyId : subjectOf(userId);
  return [own, teamId === undefined ? own : subjectOf(teamId), priority];
}

/** The places of a process that has the backends to itself. */
export function createLocalPlaces(options: Omit<DispatchOptions, "onChanged">): Places & BackendStates & Disposable {
  const { set, isAnyIn, onChanged } = createShutBackends();
  const dispatch = createDispatch({ ...options, onChanged: set });
  return { ...dispatch, isAnyIn, onChanged, list: async () => dispatch.list() };
}

/** What a process knows of the states of backends, wherever these are watched. */
export function createShutBackends() {
  const listeners = new Set<() => void>();
  let known: ReadonlySet<string> = new Set();
  return {
    /** @param shut those that take no requests now */
    set(shut: readonly string[]): void {
      known = new Set(shut);
      for (const listener of listeners) listener();
    },
    isAnyIn: (backends: readonly string[]): boolean => backends.some((name) => !known.has(name)),
    onChanged(listener: () => void): () => void {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
