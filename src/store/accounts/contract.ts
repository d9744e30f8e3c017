// The store's contract for what the console keeps: sessions, login attempts, tokens of programs, the record of changes,
// and settings by name.
//
// It keeps true: a session or token is stored by a hash, so that its row cannot be used to log in. Login attempts count
// for all processes on the database; a refused one does not count. A change and its row are one transaction
// (`audit.ts`); the row has no secret. Of several processes that set a setting if it is absent, one wins. It does not
// know what a setting means.

import type { Change } from "../../domain/changes.ts";
import type { UserId } from "../../domain/keys.ts";
import type { Engine, MaybePromise } from "../engine/engine.ts";

/** Who signed in at a provider, until the fixed end of the session; null or absent: the administrator, by the password. */
export type Person = Pick<Engine["tables"]["sessions"]["$inferSelect"], "userId" | "role" | "providerSid">;

export interface Session extends Partial<Person> {
  csrfToken: string;
  username: string;
  /** Epoch milliseconds. */
  expiresAt: number;
  /** The database does not answer, and had it before: it only reads. */
  isRemembered?: boolean;
}

/** Where a session began: an address, and the User-Agent as `client`; null for one that is older than these columns. */
type SessionOrigin = Pick<Engine["tables"]["sessions"]["$inferSelect"], "createdAt" | "address" | "client">;

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
  /** Those that have not expired at `now`, latest used first. @param of only those of a user */
  list(
    now: number,
    of?: UserId,
  ): Promise<Omit<Engine["tables"]["sessions"]["$inferSelect"], "csrfToken" | "providerSid">[]>;
  extend(idHash: string, expiresAt: number): Promise<void>;
  delete(idHash: string, by?: Change): Promise<void>;
  /** @param idHash the one that stays; empty: none does @param of only those of a user @returns how many there were */
  deleteOthers(idHash: string, by?: Change, of?: UserId): Promise<number>;
  /** Those of a user of a provider, or the one that it calls `sid`. @returns how many there were */
  deleteOfProvider(source: string, named: { external?: string | undefined; sid?: string | undefined }): Promise<number>;
  /**
   * Counts a login attempt for each of its scopes, for all processes on this database.
   * @returns undefined if it may proceed; else the scope whose limit is used up, and the attempt is not counted
   */
  countLoginAttempt(limits: readonly AttemptLimit[], now: number): Promise<RefusedAttempt | undefined>;
}

/** What a program sends to the admin API instead of a session. Times are epoch milliseconds. */
export type ApiToken = Omit<Engine["tables"]["apiTokens"]["$inferSelect"], "hash">;

/** Tokens are stored by a hash. */
export interface TokenStore {
  /** @returns undefined if there is no such token, or if it has expired at `now` */
  find(hash: string, now: number): Promise<ApiToken | undefined>;
  create(token: Omit<ApiToken, "id" | "lastUsedAt"> & { hash: string }, by?: Change): Promise<ApiToken>;
  /** By id, those that have expired too, for a month. */
  list(): Promise<ApiToken[]>;
  use(id: number, at: number): Promise<void>;
  /** @returns whether there was one */
  delete(id: number, by?: Change): Promise<boolean>;
}

type AuditRow = Engine["tables"]["audit"]["$inferSelect"];
export const auditFilters = ["actor", "action", "target"] as const;

export interface AuditStore {
  /** Records a change that is not one of the database. */
  add(by: Change): Promise<void>;
  /** Counts by address and hour. */
  addRefusedLogins(address: string, count: number): Promise<void>;
  /** Latest first. @param filter.before only rows with a lower id */
  list(
    filter: { [Name in (typeof auditFilters)[number]]?: string | undefined } & { before: number; limit: number },
  ): Promise<AuditRow[]>;
}

/** Who signs in at a provider: rows of `subjects`, whose tokens come encrypted. */
export interface SignInStore {
  /**
   * Creates or updates the user. @param who.groups the first that names a team is the user's, unless an operator set one
   * @param who.newTeam made if none does
   * @returns undefined if an operator has switched the user off
   */
  begin(who: {
    source: string;
    external: string;
    name: string;
    groups: readonly string[];
    newTeam: string | null;
    refreshToken: string | null;
  }): Promise<{ id: UserId; name: string } | undefined>;
  /** Takes the active user who has waited longest for a check, at least since `before`; no other process does until then again. */
  claim(before: number, now: number): Promise<{ id: UserId; refreshToken: string } | undefined>;
  /** Unless the user has another token than `tried` by now. */
  keep(id: UserId, tried: string, kept: { refreshToken?: string | null; refreshCheckedAt?: number }): Promise<void>;
  /** The same way, switches the user off until the next sign-in, and ends its sessions. @returns whether it did */
  leave(id: UserId, tried: string | null): Promise<boolean>;
  /** The same for owners of keys who have no token and were not seen since `before`. @returns who they were */
  endUnseen(before: number): Promise<UserId[]>;
}

export interface SettingsStore {
  find(name: string): Promise<string | undefined>;
  set(name: string, value: string, by?: Change): Promise<void>;
  /** @returns the stored value, which may be one that another process has set */
  setIfAbsent(name: string, value: string): Promise<string>;
}
