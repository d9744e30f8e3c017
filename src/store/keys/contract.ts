// The store's contract for API keys and their teams: finding an active key, for each request, and changing them.
//
// It keeps true: no secret is that of two keys, with those that were replaced and are still accepted. Two changes of
// different rules at once both hold. What a deleted key used stays, under its last name. That running responses are to
// end is a row of its own, which all processes read (`admission/revocations.ts`). It does not know what counts against
// a limit: that is `store/limits`.

import type { Change } from "../../domain/changes.ts";
import type { MaybePromise } from "../engine/engine.ts";
import type { KeyId, KeyLimits, KeyRules, Subject, TeamId } from "../../domain/keys.ts";

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
  /** Charged to its limits of tokens where the backend reported none. */
  estimatedTokens: number;
  /** From then on the key is like an inactive one; null: never. */
  expiresAt: number | null;
  rules: KeyRules;
  owner: string | null;
  note: string | null;
  tags: readonly string[];
  teamId: TeamId | null;
}

/** A team of keys, whose limits hold for all of them together. */
export interface Team {
  id: TeamId;
  name: string;
  note: string | null;
  tags: readonly string[];
  limits: KeyLimits;
  createdAt: number;
  keyCount: number;
}

/** What an operator may set; an absent member stays as it is. */
export type TeamChange = Partial<Pick<Team, "name" | "note" | "tags">> & { limits?: Partial<KeyLimits> };

export interface TeamStore {
  /** Ordered by id: all, or the one with this id. */
  list(id?: TeamId): Promise<Team[]>;
  /** @returns "collision" if another team has the name */
  create(team: TeamChange & Pick<Team, "name" | "createdAt">, by?: Change): Promise<Team | "collision">;
  /** @returns the team after the change; undefined if there is none */
  update(id: TeamId, change: TeamChange, by?: Change): Promise<Team | "collision" | undefined>;
  /** Its keys stay, without a team. @returns its last name, which its usage keeps; undefined if there is none */
  delete(id: TeamId, by?: Change): Promise<string | undefined>;
}

/** An active key, as each request needs it. */
export interface FoundKey {
  id: KeyId;
  /** Null: the key may do everything. Each limit is the tighter one of the key's and its team's. */
  rules: KeyRules | null;
  /** When the key, or the former secret that found it, is no longer accepted, in epoch milliseconds; null: never. */
  expiresAt: number | null;
  /** Unset: none. */
  teamId?: TeamId;
  /** Those with limits, if it has a team. */
  subjects?: readonly Subject[];
}

/** What an operator may set; an absent member stays as it is. */
export interface KeyChange extends Partial<
  Pick<Key, "name" | "isActive" | "expiresAt" | "owner" | "note" | "tags" | "teamId">
> {
  rules?: Partial<KeyRules>;
}

export type NewKey = KeyChange & Pick<Key, "name" | "key" | "createdAt">;

export interface Rotation {
  /** The new secret. */
  key: string;
  now: number;
  /** Until when the old secret is accepted. */
  validUntil: number;
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

export interface KeyStore {
  /** Runs for each request. A key that is switched off, by whichever process, is refused from the next request on. */
  findActive(key: string): MaybePromise<FoundKey | undefined>;
  /** Ordered by id: all keys, or the first `limit` with an id above `after`. */
  list(page?: { after: KeyId; limit: number }): Promise<Key[]>;
  /** @returns "collision" if the key exists already, "no team" if its team does not */
  create(row: NewKey, by?: Change): Promise<Key | "collision" | "no team">;
  /** @returns the key after the change; undefined if there is none */
  update(id: KeyId, change: KeyChange, by?: Change): Promise<Key | "no team" | undefined>;
  /** Replaces the secret. @returns "collision" if the new one exists already; undefined if there is no such key */
  rotate(id: KeyId, rotation: Rotation, by?: Change): Promise<Key | "collision" | undefined>;
  /** Its usage rows remain and keep its last name. @returns that name; undefined if there is no such key */
  delete(id: KeyId, by?: Change): Promise<string | undefined>;
  countActive(): Promise<number>;
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
