// The store's contract for counts: what the ledger adds, who owns what backends store, and what backends counted.
//
// It keeps true: a flush is one transaction with all sums that depend on it, the rows of the request log and what
// limits are compared with; its number says whether it was committed before. What the database itself refuses is left
// out, key by key, and reported. Clients choose the names of models, so a key has a limited number of them a day. An id
// has one owner (`stored.ts`). It does not decide what counts: an event says so.

import type { Engine } from "../engine/engine.ts";
import type { RefusedUsage } from "./batch.ts";
import type { FlushedRequests } from "../requests/contract.ts";
import type { UsageReports } from "../reports/contract.ts";
import type { KeyId } from "../../domain/keys.ts";
import type { Owner } from "../../domain/usage-event.ts";
import type { SettledAdmission } from "../../domain/admissions.ts";
import type { Usage, UsageIncrement, ResponseUsage, UsageSum } from "../../domain/usage.ts";

/** Identifies a flush, so that it counts once even if it is sent again after its response was lost. */
export interface FlushId {
  /** A random id of the ledger that sends it. */
  ledger: string;
  /** Increases with each flush of that ledger. */
  number: number;
}

export interface CommittedFlush {
  /** The tokens that were added for each of the responses; undefined if the flush was committed before. */
  added?: readonly Usage[];
  refused?: readonly RefusedUsage[];
}

export interface UsageStore extends UsageReports {
  /**
   * Adds the increments to the totals, the days, the hours, the minutes and `lastUsedAt` of their keys, in one transaction.
   * A flush that was committed before changes nothing. Of a response that is read, only the tokens above those that were
   * counted for the key and its id before are added.
   * @param responses differ in id, key, or what is noted of them
   * @param requests for the request log
   * @param settled the keys whose limits the tokens of these counts count against
   * What the database itself refuses, such as by an operator's trigger, is left out, with all that its key has in the flush.
   */
  add(
    increments: readonly UsageIncrement[],
    flush?: FlushId,
    responses?: readonly ResponseUsage[],
    requests?: FlushedRequests,
    settled?: readonly SettledAdmission[],
  ): Promise<CommittedFlush>;
  /** Whose what backends store is, for each of the ids; undefined: it was not made here. Runs before requests that name any. */
  findOwners(ids: readonly string[]): Promise<(Owner | undefined)[]>;
  /** How many ids a key owns. */
  countOwned(keyId: KeyId): Promise<number>;
  /** The sum over all keys of one day in Seoul (`YYYY-MM-DD`). */
  sumOfDay(day: string): Promise<UsageSum>;
  /** The sum over all keys from one minute (inclusive, minutes since the epoch) to another (exclusive). */
  sumOfMinutes(from: number, to: number): Promise<UsageSum>;
  /** Whether minute counts reach back to this minute, as far as hour counts do. */
  hasMinutesFrom(minute: number): Promise<boolean>;
  /** The sum over the keys that exist now. */
  sumOfKeys(): Promise<UsageSum>;
}

/** The backend's own token counters, since its start, at one moment. */
export interface CounterReading {
  /** Undefined: the only one, without a file of models. */
  backend?: string | undefined;
  source: string;
  /** Epoch milliseconds. */
  at: number;
  generatedTokens: number;
  promptTokens: number;
  /** When its process started, if it reports that. It identifies the process, which has its own counters. */
  startedAt?: number | undefined;
  /** The backend did not respond since the last reading: it may have restarted, and generated more than before. */
  afterMiss?: boolean;
}

/** What a backend processed on a day in Seoul, and what was counted for it in the same minutes. */
export type ReconciledDay = Engine["tables"]["reconciliationDay"]["$inferSelect"];

export interface ReconciliationStore {
  /**
   * Adds what came since the last reading, unless the backend may have restarted or be another one, or the last reading is
   * ten minutes old. A reading less than half a minute after the last one is ignored.
   */
  add(reading: CounterReading): Promise<void>;
  /** From a day on, latest first; of all backends together. */
  days(sinceDay: number): Promise<ReconciledDay[]>;
  /** Those of a file of models, latest day first; at most `limit`. */
  backendDays(sinceDay: number, limit: number): Promise<Engine["tables"]["reconciliationBackendDay"]["$inferSelect"][]>;
  /** The latest, whichever backend it is of. */
  lastReading(): Promise<Pick<CounterReading, "source" | "at"> | undefined>;
}
