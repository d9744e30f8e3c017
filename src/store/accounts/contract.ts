// The store's contract for what the console keeps: sessions, login attempts, and settings by name.
//
// It keeps true: a session is stored by a hash of its id, so that its row cannot be used to log in. Login attempts
// count for all processes on the database; a refused one does not count. Of several processes that set a setting if it
// is absent, one wins. It does not know what a setting means.

import type { MaybePromise } from "../engine/engine.ts";

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

/** Times are epoch milliseconds. */
export interface SessionStore {
  /** @returns undefined if there is no such session, or if it has expired at `now` */
  find(idHash: string, now: number): MaybePromise<Session | undefined>;
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
