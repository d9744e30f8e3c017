import type { GpuReading } from "../domain.ts";

/** A result that SQLite has at once and PostgreSQL a little later: `await` takes either. */
export type MaybePromise<T> = T | Promise<T>;

/** Times are epoch milliseconds. */
export interface Key {
  id: number;
  key: string;
  name: string;
  isActive: boolean;
  createdAt: number;
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

/** What many receipts of one key in one minute add up to: all that is kept of them. */
export interface UsageIncrement extends UsageSum {
  keyId: number;
  /** Minutes since the epoch. */
  minute: number;
  /** The latest closing, epoch milliseconds. */
  lastClosedAt: number;
}

/** Names one flush of one ledger, so that it is not counted twice when it is sent again because its answer got lost. */
export interface FlushId {
  ledger: string;
  /** Rises from flush to flush. */
  number: number;
}

export interface GpuSample extends GpuReading {
  id: number;
  recordedAt: number;
}

export interface PowerPoint {
  /** The bucket's start, epoch milliseconds. */
  bucketStart: number;
  powerDrawW: number;
}

export interface Session {
  csrfToken: string;
  username: string;
  expiresAt: number;
}

export interface BucketRange {
  /** Epoch milliseconds; buckets that end before it are left out. */
  since: number;
  bucketMinutes: number;
}

/** All data of the program, whichever engine holds it. Writes are durable against `kill -9` once their promise resolves. */
export interface Store {
  readonly keys: KeyStore;
  readonly usage: UsageStore;
  readonly gpu: GpuStore;
  readonly sessions: SessionStore;
  readonly settings: SettingsStore;
  /** Resolves when a write went through, rejects with StorageError where none can. */
  checkWritable(): Promise<void>;
  /** A consistent copy of the live database. @throws StorageError where `file` exists or cannot be written */
  backup(file: string): Promise<void>;
  close(): Promise<void>;
}

export interface KeyStore {
  /** For each request: a key that was switched off is refused by the next one that is sent. */
  findActive(key: string): MaybePromise<{ id: number } | undefined>;
  /** By id: all, or the first `most` of those behind the id `after`. */
  list(page?: { after: number; most: number }): Promise<Key[]>;
  /** @returns "collision" where the key exists already */
  create(row: { name: string; key: string; createdAt: number }): Promise<Key | "collision">;
  update(id: number, fields: { name?: string; isActive?: boolean }): Promise<Key | undefined>;
  /** @returns whether there was one. Its usage rows stay, and keep its last name. */
  delete(id: number): Promise<boolean>;
  countActive(): Promise<number>;
}

export interface UsageStore {
  /** One transaction: totals, day, minute, hour and `last_used_at` of each key. A flush that was written before is left out. */
  add(counts: readonly UsageIncrement[], flush?: FlushId): Promise<void>;
  /** All keys together on one Seoul day (`YYYY-MM-DD`). */
  sumOfDay(day: string): Promise<UsageSum>;
  /** All keys together from one minute (inclusive, minutes since the epoch) to another (exclusive). */
  sumOfMinutes(from: number, to: number): Promise<UsageSum>;
  /** The totals of the keys that exist. */
  sumOfKeys(): Promise<UsageSum>;
  /** Daily usage rows as JSON: objects in the API's shape, separated by commas, without the brackets; read on demand. */
  daily(sinceDay: string): AsyncIterable<Uint8Array>;
  /** Usage bucket points as JSON, like `daily`. */
  history(range: BucketRange): AsyncIterable<Uint8Array>;
}

export interface GpuStore {
  /** One transaction: samples, latest rows, the minute's power maximum, pruning, and `last_used_at` of the key that pushed. */
  add(batch: { keyId: number; recordedAt: number; readings: readonly GpuReading[] }): Promise<void>;
  latest(): Promise<GpuSample[]>;
  powerHistory(range: BucketRange): Promise<PowerPoint[]>;
}

/** Sessions are known by a hash of their id: whoever reads the database cannot use them. */
export interface SessionStore {
  find(idHash: string, now: number): MaybePromise<Session | undefined>;
  create(idHash: string, session: Session): Promise<void>;
  extend(idHash: string, expiresAt: number): Promise<void>;
  delete(idHash: string): Promise<void>;
  deleteAll(): Promise<void>;
  /** Counts one login attempt of an address; holds for every process on the same database. @returns milliseconds to wait, 0 where it may go on */
  countLoginAttempt(address: string, now: number): Promise<number>;
}

export interface SettingsStore {
  get(name: string): Promise<string | undefined>;
  set(name: string, value: string): Promise<void>;
  /** Keeps what another process set first. @returns the value that holds now */
  setIfAbsent(name: string, value: string): Promise<string>;
}

/** Storage that cannot answer now: full, locked, broken or gone. */
export class StorageError extends Error {
  override name = "StorageError";
}
