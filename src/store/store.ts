import type { AdmissionId, GpuReading, KeyId, KeyLimits, KeyRules, LimitName, Usage } from "../domain.ts";
import type { GpuPast } from "./gpu-past.ts";
import type { KeyLoad } from "./limit-windows.ts";
import type { ChartRange, DayRange } from "./usage-ranges.ts";
import type { DatabaseStore } from "./database-store.ts";
import type { ReconciliationStore } from "./reconciliation-store.ts";
import type { FlushedRequests, RequestLogStore } from "./request-log-store.ts";
import type { TrafficStore } from "./traffic-store.ts";

/** SQLite returns the result at once, PostgreSQL a promise of it: `await` takes either. */
export type MaybePromise<T> = T | Promise<T>;

/** An API key. Times are epoch milliseconds. */
export interface Key {
  id: KeyId;
  /** What clients send, stored as it is. */
  key: string;
  name: string;
  isActive: boolean;
  createdAt: number;
  /** Moves at most once a minute; null before the first use. */
  lastUsedAt: number | null;
  requestCount: number;
  inputTokens: number;
  outputTokens: number;
  /** From then on the key is like an inactive one; null: never. */
  expiresAt: number | null;
  rules: KeyRules;
  owner: string | null;
  note: string | null;
  tags: readonly string[];
}

/** An active key, as each request needs it. */
export interface FoundKey {
  id: KeyId;
  /** Null: the key may do everything. */
  rules: KeyRules | null;
}

/** What an operator may set; an absent member stays as it is. */
export interface KeyChange {
  name?: string;
  isActive?: boolean;
  expiresAt?: number | null;
  owner?: string | null;
  note?: string | null;
  tags?: readonly string[];
  rules?: Partial<KeyRules>;
}

export interface NewKey extends Omit<KeyChange, "isActive"> {
  name: string;
  key: string;
  createdAt: number;
}

export interface Rotation {
  /** The new secret. */
  key: string;
  now: number;
  /** Until when the old secret is accepted. */
  validUntil: number;
}

export interface UsageSum {
  requestCount: number;
  inputTokens: number;
  outputTokens: number;
}

/** The sum of the usage events of one key and model in one minute. */
export interface UsageIncrement extends UsageSum, Usage {
  keyId: KeyId;
  /** Minutes since the epoch. */
  minute: number;
  /** `closedAt` of the latest event, epoch milliseconds. */
  lastClosedAt: number;
  /** Unset: the requests named none. */
  model?: string | undefined;
  /** Of the cached input, what is not part of the input. */
  cachedBesideInputTokens?: number | undefined;
}

/** Usage of a response that the backend stores and may report again under the same id. */
export interface ResponseUsage extends Usage {
  responseId: string;
  keyId: KeyId;
  /** Epoch milliseconds. */
  closedAt: number;
  model?: string | undefined;
}

/** Identifies a flush, so that it counts once even if it is sent again after its response was lost. */
export interface FlushId {
  /** A random id of the ledger that sends it. */
  ledger: string;
  /** Increases with each flush of that ledger. */
  number: number;
}

/** A request of a key with limits that wants to be admitted. */
export interface AdmissionRequest {
  keyId: KeyId;
  limits: KeyLimits;
  /** Reserved until it ends. */
  tokens: number;
  /** Unique within its instance. */
  number: number;
}

/** What is to be admitted and given back in one transaction. */
export interface AdmissionBatch {
  instance: string;
  requests: readonly AdmissionRequest[];
  /** Given back. */
  ended: readonly AdmissionId[];
}

export interface AdmissionResult {
  /** What counts against the limits, this request included if it is admitted. */
  load: KeyLoad;
  /** Undefined: the request is admitted. */
  refusedBy: LimitName | undefined;
  /** Until it may be admitted, in milliseconds; only for a refused one. */
  waitMs: number;
}

/** A key whose running responses end. */
export interface KeyEnding {
  id: number;
  keyId: KeyId;
  endedAt: number;
}

export interface CountedLoad extends KeyLoad {
  keyId: KeyId;
  /** Requests that the limits refused today in Seoul. */
  refusedToday: number;
}

/** One process that holds admissions, and a number that grows while it lives. */
export interface Instance {
  id: string;
  beat: number;
}

export interface GpuSample extends GpuReading {
  /** Unique. */
  id: number;
  /** Epoch milliseconds. */
  recordedAt: number;
  /** The sender's name; null if it sent none. */
  host: string | null;
  /** Another host that has sent this GPU within the last two minutes. */
  otherHost: string | null;
}

/** One post of a GPU host: the readings of its GPUs at one moment. */
export interface GpuPush {
  /** The key that the host authenticated with. */
  keyId: KeyId;
  /** Epoch milliseconds. */
  recordedAt: number;
  host?: string | undefined;
  readings: readonly GpuReading[];
}

/** A GPU that two hosts send. */
export interface SharedGpu {
  gpuId: number;
  /** The sender of the latest sample, then the other one. */
  hosts: readonly [string, string];
}

export interface Session {
  csrfToken: string;
  username: string;
  /** Epoch milliseconds. */
  expiresAt: number;
}

/** Where a session began; null for one that is older than these columns. */
export interface SessionOrigin {
  /** Epoch milliseconds. */
  createdAt: number | null;
  address: string | null;
  /** User-Agent. */
  client: string | null;
}

export interface AttemptLimit {
  /** An address or a network. */
  scope: string;
  /** Login attempts a minute. */
  attempts: number;
}

export interface RefusedAttempt {
  scope: string;
  /** Until an attempt may proceed. */
  waitMs: number;
}

export interface BucketRange {
  /** Epoch milliseconds. Minutes that end before it are left out, so the first bucket may be partial. */
  since: number;
  /** The end of a bucket, epoch milliseconds; undefined: now. */
  until?: number | undefined;
  /** Buckets are aligned to midnight in Seoul. */
  bucketMinutes: number;
}

/**
 * All data of the program, in SQLite or PostgreSQL. A write survives `kill -9` once its promise has resolved. Every method
 * fails with StorageError if the database fails or does not respond in time.
 */
export interface Store {
  readonly keys: KeyStore;
  readonly usage: UsageStore;
  readonly requests: RequestLogStore;
  readonly traffic: TrafficStore;
  readonly reconciliation: ReconciliationStore;
  readonly database: DatabaseStore;
  readonly limits: LimitStore;
  readonly gpu: GpuStore;
  readonly sessions: SessionStore;
  readonly settings: SettingsStore;
  /** Writes a row. @throws StorageError if the database cannot be written */
  checkWritable(): Promise<void>;
  close(): Promise<void>;
}

export interface KeyStore {
  /** Runs for each request and is not cached, so a key that is switched off is refused from the next request on. */
  findActive(key: string): MaybePromise<FoundKey | undefined>;
  /** Ordered by id: all keys, or the first `limit` with an id above `after`. */
  list(page?: { after: KeyId; limit: number }): Promise<Key[]>;
  /** @returns "collision" if the key exists already */
  create(row: NewKey): Promise<Key | "collision">;
  /** @returns the key after the change; undefined if there is none */
  update(id: KeyId, change: KeyChange): Promise<Key | undefined>;
  /** Replaces the secret. @returns "collision" if the new one exists already; undefined if there is no such key */
  rotate(id: KeyId, rotation: Rotation): Promise<Key | "collision" | undefined>;
  /** Its usage rows remain and keep its last name. @returns that name; undefined if there is no such key */
  delete(id: KeyId): Promise<string | undefined>;
  countActive(): Promise<number>;
}

/** The limits of keys, which hold over all processes and instances on this database. */
export interface LimitStore {
  /** Admits what the limits allow, in order. @returns a result for each of the requests */
  admit(batch: AdmissionBatch): Promise<AdmissionResult[]>;
  /** What counts against the limits of keys. */
  listLoads(keyIds: readonly KeyId[]): Promise<CountedLoad[]>;
  /** The usage of a key by day (since 1970-01-01 in Seoul time), oldest first; days without any are left out. */
  listDays(keyId: KeyId, firstDay: number, lastDay: number): Promise<(UsageSum & { day: number })[]>;
  /** Says that an instance lives, and which admissions it holds, if others took it for dead. @returns all instances */
  beat(instance: string, held: readonly (AdmissionId & { tokens: number })[]): Promise<Instance[]>;
  listInstances(): Promise<Instance[]>;
  /** Gives back all that instances hold. */
  remove(instances: readonly string[]): Promise<void>;
  /** Asks all processes to end the running responses of a key at a time, epoch milliseconds. */
  endRunning(keyId: KeyId, at: number): Promise<void>;
  /** Takes back what is still to come of that. */
  keepRunning(keyId: KeyId): Promise<void>;
  /** What was asked for, at least for a minute after its time. */
  listEndings(): MaybePromise<KeyEnding[]>;
}

export interface UsageStore {
  /**
   * Adds the increments to the totals, the days, the hours, the minutes and `lastUsedAt` of their keys, in one transaction.
   * A flush that was committed before changes nothing. Of a response only the tokens above those that were counted for its
   * id before are added.
   * @param responses have different ids
   * @param requests for the request log
   * @param settled admissions that end with these counts
   * @returns the tokens that were added for each of `responses`; undefined if the flush was committed before
   */
  add(
    increments: readonly UsageIncrement[],
    flush?: FlushId,
    responses?: readonly ResponseUsage[],
    requests?: FlushedRequests,
    settled?: readonly AdmissionId[],
  ): Promise<readonly Usage[] | undefined>;
  /** The sum over all keys of one day in Seoul (`YYYY-MM-DD`). */
  sumOfDay(day: string): Promise<UsageSum>;
  /** The sum over all keys from one minute (inclusive, minutes since the epoch) to another (exclusive). */
  sumOfMinutes(from: number, to: number): Promise<UsageSum>;
  /** The sum over the keys that exist now. */
  sumOfKeys(): Promise<UsageSum>;
  /**
   * Usage by day and key, latest day first, from one day in Seoul (`YYYY-MM-DD`) on. The chunks concatenate to JSON objects
   * in the shape of the API, separated by commas, without the brackets. Each chunk is read from the database on demand.
   */
  daily(sinceDay: string): AsyncIterable<Uint8Array>;
  /** Usage by bucket and key, oldest bucket first; chunks like those of `daily`. */
  history(range: BucketRange): AsyncIterable<Uint8Array>;
  /**
   * The keys that use the most as columns, the others as one. The chunks concatenate to one JSON object in the shape of the
   * API; most of them are empty, since each part of the database is read on demand.
   */
  chart(range: ChartRange): AsyncIterable<Uint8Array>;
  /** The sum of each day, latest first, and the sum over the keys that exist; chunks like those of `chart`. */
  byDay(range: DayRange): AsyncIterable<Uint8Array>;
  /** A page of the latest days by key, latest first, as columns; chunks like those of `chart`. */
  byDayAndKey(range: DayRange): AsyncIterable<Uint8Array>;
}

export interface GpuStore {
  /**
   * Stores a push, updates the latest samples, the history and `lastUsedAt`, and prunes old rows, in one transaction.
   * @returns the GPUs of this push that another host sends too
   */
  add(push: GpuPush): Promise<readonly SharedGpu[]>;
  /** Adds hours and minutes that nothing was stored for. Pushes must come later. */
  addPast(past: GpuPast): Promise<void>;
  /** The latest sample of each GPU of the last seven days, ordered by GPU. */
  latest(): Promise<GpuSample[]>;
  /**
   * The highest total of all GPUs of one push in each bucket, oldest first; buckets without a push are left out. Chunks like
   * those of `UsageStore.daily`.
   */
  powerHistory(range: BucketRange): AsyncIterable<Uint8Array>;
  /**
   * Mean power and energy of all GPUs together, or the mean, maximum and last value of each measure of one GPU, in each
   * bucket, oldest first; minutes without a reading are left out. Chunks like those of `UsageStore.daily`.
   */
  history(range: BucketRange, gpuId?: number): AsyncIterable<Uint8Array>;
}

/** Sessions are stored by a hash of their id, so their rows cannot be used to log in. Times are epoch milliseconds. */
export interface SessionStore {
  /** @returns undefined if there is no such session, or if it has expired at `now` */
  find(idHash: string, now: number): MaybePromise<Session | undefined>;
  /** Also deletes the sessions that have expired. */
  create(idHash: string, session: Session, origin?: SessionOrigin): Promise<void>;
  /** Those that have not expired at `now`, latest used first. */
  list(now: number): Promise<(Omit<Session, "csrfToken"> & SessionOrigin & { idHash: string })[]>;
  extend(idHash: string, expiresAt: number): Promise<void>;
  delete(idHash: string): Promise<void>;
  deleteAll(): Promise<void>;
  /** @returns how many there were */
  deleteOthers(idHash: string): Promise<number>;
  /**
   * Counts a login attempt for each of its scopes, for all processes on this database.
   * @returns undefined if it may proceed; else the scope whose limit is used up, and the attempt is not counted
   */
  countLoginAttempt(limits: readonly AttemptLimit[], now: number): Promise<RefusedAttempt | undefined>;
}

export interface SettingsStore {
  find(name: string): Promise<string | undefined>;
  set(name: string, value: string): Promise<void>;
  /** @returns the stored value, which may be one that another process has set */
  setIfAbsent(name: string, value: string): Promise<string>;
}

export interface StorageErrorOptions extends ErrorOptions {
  /** The database works but refuses these values, so the same write fails again. */
  isRefusal?: boolean;
}

/** The database is full, locked, damaged, unreachable or too slow, or refuses a value. The message is meant for the operator. */
export class StorageError extends Error {
  override name = "StorageError";
  readonly isRefusal: boolean;

  constructor(message: string, { isRefusal = false, ...options }: StorageErrorOptions = {}) {
    super(message, options);
    this.isRefusal = isRefusal;
  }
}
