// The store's contract for the limits of keys and teams, which hold over all processes and instances on this database: what
// counts against them now, and the leases by which processes take of what is left.
//
// It keeps true: what a process holds is said in all, so that a repeated batch takes nothing twice and a late one
// changes nothing. `judge.ts` decides what a limit allows; the function of PostgreSQL beside `take-leases.ts` says
// the same. On PostgreSQL, requests count by the database's clock. What a dead process held is given back by the
// others, and charged.
// Removed: a row for each admission.

import type { Engine } from "../engine/engine.ts";
import type { KeyLoad, KeySecond, Size } from "./judge.ts";
import type { KeyId, KeyLimits, LimitName, SubjectId } from "../../domain/keys.ts";
import type { UsageSum } from "../../domain/usage.ts";
import type { Window } from "../../time/seoul.ts";

/** What a process holds of one subject, in all: a repetition takes nothing twice. */
interface HeldLease {
  id: SubjectId;
  limits: KeyLimits;
  /** What its requests in flight hold, and what was taken ahead for others. */
  places: number;
  tokens: number;
  /** Requests that count in a second and are not in the database; negative for those that it has, and that never came. */
  corrections: readonly { second: number; requests: number }[];
  /** How many requests were refused since the last batch. */
  refused: number;
}

/** What a process asks for, for requests whose subjects are the same. */
export interface LeaseRequest {
  /** What is granted to an earlier one of the batch counts for them too. */
  subjects: readonly HeldLease[];
  /** What each new request asks for, in order; those are admitted that the limits of all subjects allow. */
  requests: readonly Size[];
  /** So many further requests of the largest of these sizes may come within the same second: only if much is left. */
  ahead: number;
}

interface LeasedSubject {
  /** What counts without the new requests. With the limits it says which are admitted: `judge`. */
  load: KeyLoad;
  /** What of that the process itself holds, those of earlier requests of the batch too. */
  places: number;
  tokens: number;
  /** The seconds of the last minute, oldest first, if a request is refused. */
  seconds?: readonly KeySecond[] | undefined;
}

export interface Lease {
  /** In the order of the request's. */
  subjects: readonly LeasedSubject[];
  /** When it was taken, by the database's clock. Its requests count in that second. */
  now: number;
  /** How many further requests may come. */
  ahead: number;
}

/** What one process takes at once. */
export interface LeaseBatch {
  instance: string;
  /** Grows with each batch of the instance: one that arrives after a later one changes nothing that is held. */
  version: number;
  requests: readonly LeaseRequest[];
}

/** The seconds of a minute do not tell estimates apart. */
type EstimatedTokens = Readonly<Partial<Record<Window, number>>>;

export interface CountedLoad extends KeyLoad {
  keyId: SubjectId;
  /** Requests that the limits refused today in Seoul. */
  refusedToday: number;
  /** Of its tokens by window, those that were charged by an estimate. */
  estimated: EstimatedTokens;
  /** When it was read, epoch milliseconds. */
  readAt: number;
}

/** What a key used on a day, and what it was charged by an estimate. */
interface ChargedDay extends UsageSum {
  /** Since 1970-01-01 in Seoul time. */
  day: number;
  estimatedTokens: number;
}

/** How much of a limit one is using, what is reserved included. */
export interface UsedLimit {
  id: SubjectId;
  name: string;
  limit: LimitName;
  used: number;
  most: number;
}

/** Of a limit of a day, week or month. */
interface NotifiedLimit extends UsedLimit {
  /** What it limits, for people. */
  unit: string;
  /** Epoch milliseconds. */
  resetsAt: number;
}

/** One process that holds leases, and a number that grows while it lives. */
export type Instance = Engine["tables"]["instances"]["$inferSelect"];

export interface LimitStore {
  /** Takes what the limits allow. @returns a lease for each of the requests */
  take(batch: LeaseBatch): Promise<Lease[]>;
  /** What counts against the limits of keys and teams. */
  listLoads(keyIds: readonly SubjectId[]): Promise<CountedLoad[]>;
  /** Of active keys and of teams, that have used such a share of one of their limits, the nearest limit; most used first. */
  listNear(share: number, count: number): Promise<UsedLimit[]>;
  /** Of active keys, of teams and users with `notify`. */
  listNotified(): Promise<NotifiedLimit[]>;
  /** The usage of a key by day, oldest first; days without any are left out. */
  listDays(keyId: KeyId, firstDay: number, lastDay: number): Promise<ChargedDay[]>;
  /**
   * Reports that an instance is alive. The first time, it gives back what instances hold that are not listed.
   * @returns all instances
   */
  beat(instance: string): Promise<Instance[]>;
  listInstances(): Promise<Instance[]>;
  /** Gives back all that instances hold. The tokens are charged, since what their requests used is unknown. */
  remove(instances: readonly string[]): Promise<void>;
}
