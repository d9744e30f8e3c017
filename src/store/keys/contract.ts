// The store's contract for API keys, their teams and users: finding an active key, for each request, and changing them.
//
// It keeps true: no secret is that of two keys, with those that were replaced and are still accepted. Two changes of
// different rules at once both hold. What a deleted key used stays, under its last name. That running responses are to
// end is a row of its own, which all processes read (`admission/revocations.ts`). It does not know what counts against
// a limit: that is `store/limits`.

import type { Change } from "../../domain/changes.ts";
import type { MaybePromise } from "../engine/engine.ts";
import type { FoundUser, KeyId, KeyLimits, KeyRules, SeenUser, Subject, TeamId, UserId } from "../../domain/keys.ts";

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
  /** Whose own it is: it counts for that user, whatever it is sent with. */
  userId: UserId | null;
}

/** A team of keys, or a user behind some, whose limits hold beside those of the key. */
export interface TeamOrUser {
  id: TeamId;
  kind: "team" | "user";
  name: string;
  note: string | null;
  tags: readonly string[];
  limits: KeyLimits;
  /** When a user was first seen. */
  createdAt: number;
  /** How many keys a team has. */
  keyCount: number;
  /** Who says who the user is, `key:7` or a name that several keys give; null for a team, like what follows. */
  source: string | null;
  /** The user's id there; empty: all that are too many for the key. */
  external: string | null;
  /** With which it was first seen. */
  keyId: KeyId | null;
  teamId: TeamId | null;
  /** Whose counts and limits hold for it. */
  sameAs: UserId | null;
  isActive: boolean;
  /** Moves at most once a minute; null before the first time. */
  lastSeenAt: number | null;
  /** Each sign-in sets the team; an operator who sets it ends that. */
  teamByProvider: boolean;
  /** At a provider of OpenID Connect, the last time. */
  signedInAt: number | null;
  /** The provider is asked whether it still knows the user, and was so then, or at the last sign-in. */
  isAskedAbout: boolean;
  refreshCheckedAt: number | null;
}

/** What an operator may set; an absent member stays as it is. */
export type SubjectChange = Partial<
  Pick<TeamOrUser, "name" | "note" | "tags" | "teamId" | "teamByProvider" | "sameAs" | "isActive">
> & {
  limits?: Partial<KeyLimits>;
};
type NewSubject = SubjectChange &
  Pick<TeamOrUser, "name" | "createdAt"> &
  Partial<Pick<TeamOrUser, "source" | "external" | "keyId">>;

export interface SubjectFilter extends Partial<Record<"id" | "keyId" | "teamId", number | undefined>> {
  kind: TeamOrUser["kind"];
  /** In the name or the external id, in any case. */
  text?: string | undefined;
  /** Only those with an id above it, and at most so many. */
  after?: number | undefined;
  limit?: number | undefined;
}

/** Another has that name or identity, or what it refers to is not there. */
export type SubjectProblem = "collision" | "no team" | "no key" | "no user" | "unsigned";

/** Teams and users. */
export interface SubjectStore {
  /** Ordered by id. */
  list(filter: SubjectFilter): Promise<TeamOrUser[]>;
  create(kind: TeamOrUser["kind"], subject: NewSubject, by?: Change): Promise<TeamOrUser | SubjectProblem>;
  /** With `isActive` false a user's sessions end, and its own keys are refused. @returns it afterwards; undefined if there is none */
  update(
    kind: TeamOrUser["kind"],
    id: number,
    change: SubjectChange,
    by?: Change,
  ): Promise<TeamOrUser | SubjectProblem | undefined>;
  /**
   * Keys and users of a team stay, without one.
   * @param forgets nothing that a user was called is kept
   * @returns its last name, which its usage keeps; undefined if there is none
   */
  delete(kind: TeamOrUser["kind"], id: number, forgets: boolean, by?: Change): Promise<string | undefined>;
  /** How many users each key has that tells them apart; `other` is one. */
  countUsers(): Promise<{ key: string; users: number; max: number }[]>;
  /** The user of a request, which the first one creates; by its id, of a key of its own. */
  see(seen: SeenUser | UserId): MaybePromise<FoundUser>;
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
  /** Whose own it is. */
  userId?: UserId;
  /** Those with limits, if it has a team. */
  subjects?: readonly Subject[];
}

/** What an operator may set; an absent member stays as it is. */
export interface KeyChange extends Partial<
  Pick<Key, "name" | "isActive" | "expiresAt" | "owner" | "note" | "tags" | "teamId">
> {
  rules?: Partial<KeyRules>;
}

export type NewKey = KeyChange &
  Pick<Key, "name" | "key" | "createdAt"> & { own?: { userId: UserId; maxKeys: number } };

interface Rotation {
  /** The new secret. */
  key: string;
  now: number;
  /** Until when the old secret is accepted. */
  validUntil: number;
  /** The key's from now on; undefined: as before. */
  expiresAt?: number | null | undefined;
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
  list(page?: { after: KeyId; limit: number; userId?: UserId }): Promise<Key[]>;
  /** @returns "collision" if the key exists already, "no team" if its team does not, "too many" of a user who is full or gone */
  create(row: NewKey, by?: Change): Promise<Key | "collision" | "no team" | "too many">;
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
