import type { Choice, ChoiceReason } from "../domain/backends.ts";
import type { Backend } from "../domain/models.ts";
import type { ExpectedWork } from "./affinity.ts";
import type { Health } from "./health-rules.ts";

/** What a backend was sent since it was out, or began: nobody may ever answer what it was sent before. */
export interface Load {
  inFlight: number;
  /** How many of these have no first byte. */
  unbegun: number;
  /** What these have to read. */
  waitingTokens: number;
  /** The part of that which is of giants: prompts of more than `maxPrefillTokens` that it has not read before. */
  giantTokens: number;
}

type Limits = Partial<Pick<Backend, "spill" | "maxConcurrency" | "maxPrefillTokens">>;

/** What the choice knows of a backend. */
export interface BackendRow extends Limits, Partial<Omit<Load, "inFlight">>, Partial<Pick<Health, "warmUp">> {
  name: string;
  inFlight: number;
  /** How many of these are not in its load. */
  lost?: number;
  /** Gets requests; those that no other takes; of these, those that were not there; those that cannot wait; none. */
  standing: "in" | "busy" | "suspect" | "out" | "closed";
}

export interface RequestToPlace {
  /** Requests that have it in common go to the same backend, if nothing else tells them apart. */
  affinity: string;
  /** What a backend would have to read of it. */
  workAt: (backend: string) => ExpectedWork;
  /** The backends that it was at already, to no avail. */
  tried: readonly string[];
  /** Nothing was sent there: it may return to those that are up, as far as is known, where no other has a place. */
  mayReturn: boolean;
  /** How long its body is; 0: what the backends would have to read is not known. */
  tokens: number;
}

/**
 * @param candidates those that may serve the request, in the operator's order
 * @returns undefined if it has to wait
 */
export function choose(candidates: readonly BackendRow[], request: RequestToPlace): Choice | undefined {
  const { tried, mayReturn } = request;
  const mayTryOut =
    tried.length === 0 && candidates.every(({ standing }) => standing === "out" || standing === "closed");
  let best: { rows: BackendRow[]; rank: number } = { rows: [], rank: Infinity };
  for (const row of candidates) {
    const wasThere = tried.includes(row.name);
    if (wasThere && (!mayReturn || row.standing === "suspect")) continue;
    const rank = isCrowded(row, request) ? Infinity : rankOf(row, mayTryOut) + (wasThere ? 4 : 0);
    if (rank < best.rank) best = { rows: [row], rank };
    else if (rank === best.rank && rank < Infinity) best.rows.push(row);
  }
  const { chosen, elsewhere } = leastWork(best.rows, request);
  if (chosen === undefined) return undefined;
  const choice = { backend: chosen.name, reason: reasonOf(chosen, candidates, request) };
  const { tokens, workAt } = request;
  if (candidates.length < 2 || tokens === 0) return choice;
  const { tokens: toRead, reason } = workAt(chosen.name);
  return { ...choice, expectation: { tokens, toRead, isOwn: reason === "session", elsewhere } };
}

/** The lowest is chosen; infinite: not at all. */
function rankOf(row: BackendRow, mayTryOut: boolean): number {
  const { standing, spill = false } = row;
  if (standing === "closed" || (standing === "out" && !mayTryOut) || isFull(row)) return Infinity;
  return (standing === "in" || standing === "out" ? 0 : 2) + (spill ? 1 : 0);
}

export const isFull = ({ inFlight, unbegun = 0, maxConcurrency = Infinity, warmUp = Infinity }: BackendRow): boolean =>
  inFlight >= maxConcurrency || unbegun >= warmUp;

/**
 * Whether a prompt would slow down what the backend writes. One giant is read at a time, and others beside it as long as they
 * are together no more than one that is none; without a giant they are never held.
 */
export function isCrowded(
  { name, maxPrefillTokens: most, waitingTokens = 0, giantTokens = 0 }: BackendRow,
  { workAt }: Pick<RequestToPlace, "workAt">,
): boolean {
  if (most === undefined || giantTokens === 0) return false;
  const { tokens } = workAt(name);
  return waitingTokens - giantTokens + tokens > most;
}

/**
 * What a request in flight takes from the reading of others, now and in its turns to come. In the model of
 * `tests/bench/routing.ts` 4000 serves the most; with fewer, or if those that have no first byte did not count, a slow
 * backend gets too many at once, and with 8000 conversations leave where they are cached.
 */
const tokensPerRequest = 4000;

/** What a backend has to do before and beside a request, and for it, in tokens. */
export const workBefore = (
  { inFlight, lost = 0, waitingTokens = 0 }: Pick<BackendRow, "inFlight" | "lost" | "waitingTokens">,
  { tokens, leaving }: Pick<ExpectedWork, "tokens" | "leaving">,
): number => waitingTokens + (inFlight - lost) * tokensPerRequest + tokens + leaving;

/** @returns `elsewhere` is what the next best has to do, less what waits at the chosen one; undefined: there is none */
function leastWork(rows: readonly BackendRow[], { affinity, workAt }: RequestToPlace) {
  if (rows.length < 2) return { chosen: rows[0], elsewhere: undefined };
  const works = rows.map((row) => {
    const work = workAt(row.name);
    const total = workBefore(row, work);
    return { row, total, toDo: total - work.leaving, waits: total - work.leaving - work.tokens };
  });
  const score = ({ row }: { row: BackendRow }): number => rendezvous(affinity, row.name);
  const least = works.reduce((best, one) =>
    one.total < best.total || (one.total === best.total && score(one) > score(best)) ? one : best,
  );
  const others = works.filter((one) => one !== least).map(({ toDo }) => toDo);
  return { chosen: least.row, elsewhere: Math.min(...others) - least.waits };
}

function reasonOf(
  { name, spill = false }: BackendRow,
  candidates: readonly BackendRow[],
  { tried, workAt }: RequestToPlace,
): ChoiceReason {
  if (candidates.length === 1) return "only";
  if (tried.length > 0) return "failover";
  return spill && candidates.some((one) => one.spill !== true) ? "spill" : workAt(name).reason;
}

/** The same for each process and instance: where a backend is gone, only what went there goes elsewhere. */
function rendezvous(affinity: string, name: string): number {
  let hash = 0x811c9dc5;
  for (const text of [affinity, "\n", name]) {
    for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
