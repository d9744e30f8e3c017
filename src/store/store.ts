import type { GpuReading, KeyId, Usage } from "../domain.ts";
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

export interface GpuSample extends GpuReading {
  /** Unique. */
  id: number;
  /** Epoch milliseconds. */
  recordedAt: number;
}

/** One post of a GPU host: the readings of its GPUs at one moment. */
export interface GpuPush {
  /** The key that the host authenticated with. */
  keyId: KeyId;
  /** Epoch milliseconds. */
  recordedAt: number;
  readings: readonly GpuReading[];
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
  readonly gpu: GpuStore;
  readonly sessions: SessionStore;
  readonly settings: SettingsStore;
  /** Writes a row. @throws StorageError if the database cannot be written */
  checkWritable(): Promise<void>;
  close(): Promise<void>;
}

export interface KeyStore {
  /** Runs for each request and is not cached, so a key that is switched off is refused from the next request on. */
  findActive(key: string): MaybePromise<{ id: KeyId } | undefined>;
  /** Ordered by id: all keys, or the first `limit` with an id above `after`. */
  list(page?: { after: KeyId; limit: number }): Promise<Key[]>;
  /** @returns "collision" if the key exists already */
  create(row: { name: string; key: string; createdAt: number }): Promise<Key | "collision">;
  /** @returns the key after the change; undefined if there is none */
  update(id: KeyId, fields: { name?: string; isActive?: boolean }): Promise<Key | undefined>;
  /** Its usage rows remain and keep its last name. @returns that name; undefined if there is no such key */
  delete(id: KeyId): Promise<string | undefined>;
  countActive(): Promise<number>;
}

export interface UsageStore {
  /**
   * Adds the increments to the totals, the days, the hours, the minutes and `lastUsedAt` of their keys, in one transaction.
   * A flush that was committed before changes nothing. Of a response only the tokens above those that were counted for its
   * id before are added.
   * @param responses have different ids
   * @param requests for the request log
   * @returns the tokens that were added for each of `responses`; undefined if the flush was committed before
   */
  add(
    increments: readonly UsageIncrement[],
    flush?: FlushId,
    responses?: readonly ResponseUsage[],
    requests?: FlushedRequests,
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
}

export interface GpuStore {
  /** Stores a push, updates the latest samples, the power maximum and `lastUsedAt`, and prunes old rows, in one transaction. */
  add(push: GpuPush): Promise<void>;
  /** The latest sample of each GPU of the last seven days, ordered by GPU. */
  latest(): Promise<GpuSample[]>;
  /**
   * The highest total of all GPUs of one push in each bucket, oldest first; buckets without a push are left out. Chunks like
   * those of `UsageStore.daily`.
   */
  powerHistory(range: BucketRange): AsyncIterable<Uint8Array>;
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
