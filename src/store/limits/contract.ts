import type { KeyLoad } from "./windows.ts";
import type { MaybePromise } from "../engine/maybe-promise.ts";
import type { KeyId, KeyLimits, LimitName } from "../../domain/keys.ts";
import type { AdmissionId } from "../../domain/admissions.ts";
import type { UsageSum } from "../../domain/usage.ts";

/** A request of a key with limits, to be admitted or refused. */
export interface AdmissionRequest {
  keyId: KeyId;
  limits: KeyLimits;
  /** Reserved until it ends. */
  tokens: number;
  /** Within its instance. Those that have the same one hold what they reserve together. */
  number: number;
  /** So many further requests like this one may come within the same second: they are admitted only if much is left. */
  spare?: number;
  /** If the refusal does not last, the request waits and asks again: it does not count as refused. */
  mayWait?: boolean;
}

/** What an instance holds for one request, or for several. */
export interface HeldAdmission extends AdmissionId {
  tokens: number;
}

/** Spare admissions that no request came for. */
export interface UnusedAdmissions {
  keyId: KeyId;
  /** In which they were counted as requests, since the epoch. */
  second: number;
  requests: number;
}

/** What is to be admitted and given back in one transaction. */
export interface AdmissionBatch {
  instance: string;
  requests: readonly AdmissionRequest[];
  /** Admissions to give back. */
  ended: readonly AdmissionId[];
  /** Admissions that hold as many tokens as this now, and those of the requests that are admitted here. */
  resized?: readonly HeldAdmission[];
  /** Requests that count no more. */
  unused?: readonly UnusedAdmissions[];
  /** The same requests were sent before, and may have been admitted. */
  isRepeated?: boolean;
}

export interface AdmissionResult {
  /** What counts against the limits, this request included if it is admitted. */
  load: KeyLoad;
  /** Undefined: the request is admitted. */
  refusedBy: LimitName | undefined;
  /** Until it may be admitted, in milliseconds; only for a refused one. */
  waitMs: number;
  /** In which it counts as a request, since the epoch. */
  second: number;
  /** How many spare ones are admitted too. */
  spare: number;
}

/** A request to end the running responses of a key. */
export interface KeyEnding {
  id: number;
  keyId: KeyId;
  endedAt: number;
  /** The key's, as it is now; null if the key is deleted. */
  isActive: boolean | null;
  expiresAt: number | null;
}

export interface CountedLoad extends KeyLoad {
  keyId: KeyId;
  /** Requests that the limits refused today in Seoul. */
  refusedToday: number;
  /** When it was read, epoch milliseconds. */
  readAt: number;
}

/** What a key used on a day, and what it was charged by an estimate. */
export interface ChargedDay extends UsageSum {
  /** Since 1970-01-01 in Seoul time. */
  day: number;
  estimatedTokens: number;
}

/** One process that holds admissions, and a number that grows while it lives. */
export interface Instance {
  id: string;
  beat: number;
}

/** The limits of keys, which hold over all processes and instances on this database. */
export interface LimitStore {
  /** Admits what the limits allow, in order. @returns a result for each of the requests */
  admit(batch: AdmissionBatch): Promise<AdmissionResult[]>;
  /** What counts against the limits of keys. */
  listLoads(keyIds: readonly KeyId[]): Promise<CountedLoad[]>;
  /** How many active keys have used up one of their limits, what is reserved included. */
  countAtLimit(): Promise<number>;
  /** The usage of a key by day, oldest first; days without any are left out. */
  listDays(keyId: KeyId, firstDay: number, lastDay: number): Promise<ChargedDay[]>;
  /**
   * Reports that an instance is alive. The first time, it gives back what instances hold that are not listed.
   * @param held stored again if the instance was not listed, such as when the others took it for dead
   * @returns all instances
   */
  beat(instance: string, held: readonly HeldAdmission[]): Promise<Instance[]>;
  listInstances(): Promise<Instance[]>;
  /** Gives back all that instances hold. */
  remove(instances: readonly string[]): Promise<void>;
  /**
   * Requests that all processes end the running responses of a key.
   * @param at epoch milliseconds
   */
  endRunning(keyId: KeyId, at: number): Promise<void>;
  /** Withdraws such requests whose time has not come. */
  keepRunning(keyId: KeyId): Promise<void>;
  /** Such requests, until at least a minute after their time. */
  listEndings(): MaybePromise<KeyEnding[]>;
}
