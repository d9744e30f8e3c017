// The store's contract for API keys, their teams and users: finding an active key, for each request, and changing them.
//
// It keeps true: no secret is that of two keys, with those that were replaced and are still accepted. Two changes of
// different rules at once both hold. What a deleted key used stays, under its last name. That running responses are to
// end is a row of its own, which all processes read (`admission/revocations.ts`). It does not know what counts against
// a limit: that is `store/limits`.

import type { Change } from "../../domain/changes.ts";
import type { Engine, MaybePromise } from "../engine/engine.ts";
import type { FoundUser, KeyId, KeyLimits, KeyRules, SeenUser, Subject, TeamId, UserId } from "../../domain/keys.ts";

type KeyRow = Engine["tables"]["keys"]["$inferSelect"];
type SubjectRow = Engine["tables"]["subjects"]["$inferSelect"];

/** An API key. */
export interface Key extends Omit<KeyRow, "rules" | "tags"> {
  rules: KeyRules;
  tags: readonly string[];
}

/** A team of keys, or a user behind some, whose limits hold beside those of the key. */
export interface TeamOrUser extends Omit<SubjectRow, "rules" | "tags" | "refreshToken" | "isKept"> {
  tags: readonly string[];
  limits: KeyLimits;
  /** How many keys a team has. */
  keyCount: number;
  /** The provider is asked whether it still knows the user, and was so then, or at the last sign-in. */
  isAskedAbout: boolean;
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
