// Who waits, who has a place at which backend, and what is known of backends: one for each machine.
//
//   request: waiting -> placed -> left; refused if too many wait; displaced to make room for one of another key
//   backend: in -> suspect -> out -> in, warming up; beside these busy for a while, or draining
//
// It keeps true: the backend is chosen when the place is granted (`choice.ts`), so that none waits for one backend
// while another has room. A free place goes to the key with the fewest requests in flight (`fair-queue.ts`). Signs of
// requests make a backend suspect; only a probe takes it out, and brings it back (`health.ts`).
// All of it is in memory: a new process takes every backend for in and knows no conversation. It knows sizes and hashes
// of bodies alone, no limits of keys, and no other process; what asks a backend is an argument.

import type { Entry, ListedRequest, Rank } from "../domain/admissions.ts";
import { type BackendSign, type BackendStatus, type Choice, noConversation } from "../domain/backends.ts";
import { type Affinity, affinityOf, createAffinity } from "./affinity.ts";
import type { RequestToPlace } from "./choice.ts";
import type { MemorySize } from "./memory.ts";
import { type BackendTableOptions, createBackendTable, type Load, noLoad } from "./backend-table.ts";
import type { ReportedInput } from "../domain/usage.ts";
import type { MonotonicClock } from "../time/clock.ts";
import { createFairQueue } from "./fair-queue.ts";

export type Dispatch<Ticket> = ReturnType<typeof createDispatch<Ticket>>;

export interface DispatchOptions<Ticket> extends Omit<BackendTableOptions, "onFreed" | "onChanged" | "onOut"> {
  maxWaiting: number;
  /** Called when a request that waited gets a place. */
  onGranted: (ticket: Ticket, choice: Choice) => void;
  /** Called when a request that waited is refused, to make room for one of another key. */
  onDisplaced: (ticket: Ticket) => void;
  /** Called when other backends than before take no requests. */
  onChanged: (shut: string[]) => void;
}

interface Held {
  request: ListedRequest;
  /** Requests of a group may use the same places. */
  group: string;
  /** Where it has a place. */
  backend: string | undefined;
  /** What that has to read of it. */
  tokens: number;
  load: Load;
  /** What that has read of its conversation before. */
  readBefore: number;
  hasResponded: boolean;
  hasBegun: boolean;
}

export function createDispatch<Ticket>(options: DispatchOptions<Ticket>) {
  const [all, affinity] = [new Map<Ticket, Held>(), createAffinity(memorySize)];
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
  const requestOf = (ticket: Ticket): ListedRequest => all.get(ticket)?.request ?? nowhere;
  let shut: string[] = [];
  const queue = createFairQueue<Ticket>({
    maxWaiting: options.maxWaiting,
    groupOf: (ticket) => all.get(ticket)?.group ?? "",
    findPlace(ticket) {
      const request = requestOf(ticket);
      const choice = table.findPlace(request.candidates, requestToPlace(request, affinity));
      return choice && Object.assign(choice, { lastTurn: affinity.lastTurn(request, choice.backend) });
    },
    onGranted(ticket, choice) {
      take(ticket, choice);
      options.onGranted(ticket, choice);
    },
    onDisplaced(ticket) {
      all.delete(ticket);
      options.onDisplaced(ticket);
    },
  });

  function take(ticket: Ticket, { backend }: Choice): void {
    const held = all.get(ticket);
    if (held === undefined) return;
    const { tokens, readBefore } = affinity.expect(held.request)(backend);
    const load = table.take(backend, tokens);
    Object.assign(held, { backend, tokens, load, readBefore });
  }

  /** Only now has the backend read the request: a burst of equal ones would all follow the first, and wait for it. */
  function begin(held: Held): void {
    if (held.hasBegun || held.backend === undefined) return;
    held.hasBegun = true;
    affinity.remember(held.backend, held.request);
    table.begin(held.backend, held);
  }

  return {
    enter(ticket: Ticket, request: ListedRequest): Entry {
      all.set(ticket, heldBy(request));
      const entry = queue.enter(ticket, request.keyId, request.waits);
      if (entry === "full") all.delete(ticket);
      else if (entry !== "waiting") take(ticket, entry);
      return entry;
    },
    report(ticket: Ticket, sign: BackendSign): void {
      const held = all.get(ticket);
      if (held?.backend === undefined) return;
      if (sign.kind !== "begun") {
        held.hasResponded = sign.kind === "responded";
        table.note(held.backend, sign);
        // A failure has bytes too, and they say nothing for the backend.
      } else if (held.hasResponded) begin(held);
    },
    /** To be called when the request has ended, moves on, or no longer waits. See `Places`. */
    leave(ticket: Ticket, input?: ReportedInput): void {
      const held = all.get(ticket);
      all.delete(ticket);
      if (held?.backend !== undefined) {
        if (input !== undefined) affinity.learn(held.backend, held.request, held.readBefore, input);
        if (held.hasResponded) {
          // It ended well without a byte.
          begin(held);
          table.note(held.backend, { kind: "ended" });
        }
        table.giveBack(held.backend, held);
      }
      queue.leave(ticket);
    },
    rankOf: createRanks(queue.waiting, (ticket) => lineNameOf(requestOf(ticket)), options.monotonic),
    list(): BackendStatus[] {
      const waiting = queue.waiting().map(requestOf);
      return table.list().map((row) => Object.assign(row, { waiting: countFor(row.name, waiting) }));
    },
    setDraining: table.setDraining,
    /** What the backend had cached is gone. Several processes tell of the same restart. */
    hasRestarted: oncePerRestart(affinity.forget, options.monotonic),
    /** The backends that take no requests now. */
    shut: table.shut,
    [Symbol.dispose]: table[Symbol.dispose],
  };
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

const nowhere: ListedRequest = {
  keyId: 0,
  waits: true,
  model: undefined,
  candidates: [],
  characters: 0,
  conversation: noConversation,
  tried: [],
};

const heldBy = (request: ListedRequest): Held => ({
  request,
  group: JSON.stringify([request.candidates, request.tried]),
  backend: undefined,
  tokens: 0,
  load: noLoad(),
  readBefore: 0,
  hasResponded: false,
  hasBegun: false,
});

const requestToPlace = (request: ListedRequest, { expect, tokensOf }: Affinity): RequestToPlace => ({
  affinity: affinityOf(request.keyId, request.conversation),
  tried: request.tried,
  mayReturn: request.waits,
  workAt: expect(request),
  tokens: tokensOf(request),
});

/** All that wait ask time and again, and to look through the line for each would take the longer, the longer it is. */
const ranksMs = 100;

/** Ranks that may be `ranksMs` old. @param listWaiting oldest first */
function createRanks<Ticket>(
  listWaiting: () => Ticket[],
  lineOf: (ticket: Ticket) => string,
  monotonic: MonotonicClock,
): (ticket: Ticket) => Rank | undefined {
  let ranks = new Map<Ticket, Rank>();
  let readAt = -Infinity;
  return (ticket) => {
    const now = monotonic();
    if (now - readAt >= ranksMs) {
      readAt = now;
      ranks = rankAll(listWaiting(), lineOf);
    }
    return ranks.get(ticket);
  };
}

function rankAll<Ticket>(waiting: readonly Ticket[], lineOf: (ticket: Ticket) => string): Map<Ticket, Rank> {
  const ranks = new Map<Ticket, Rank>();
  for (const line of Map.groupBy(waiting, lineOf).values()) {
    for (const [index, ticket] of line.entries()) ranks.set(ticket, { position: index + 1, length: line.length });
  }
  return ranks;
}

const countFor = (backend: string, waiting: readonly ListedRequest[]): number =>
  waiting.filter(({ candidates }) => candidates.includes(backend)).length;

/** There is one line for each model; what names none waits with what has the same backends. */
const lineNameOf = ({ model, candidates }: ListedRequest): string => model ?? JSON.stringify(candidates);
