// The nouns that several rooms share: keys, limits, usage, requests, admissions, backends, models, prices, GPUs.
//
// It keeps true: a list that others follow stands here once, and they derive from it, so that the type check names what
// a new entry lacks: the counters (`usage.ts`), the kinds of limits (`limits.ts`), the fields of the request log
// (`request-fields.ts`). A leaf of types and pure functions, which the console may import too: it knows no database, no
// clock and no route. Removed: one file for all of it.

import type { KeyLimits, Priority } from "./limits.ts";

export type { KeyLimits, LimitName } from "./limits.ts";

export type KeyId = number;
export type TeamId = number;
export type UserId = number;
/**
 * Whose limits hold: a key, a team or a user. The latter two are the numbers below 0, so that all have the same tables and
 * their rows one order.
 */
export type SubjectId = number;
/** @param id of a team or a user: no two of them have the same */
export const subjectOf = (id: TeamId): SubjectId => -id;

/** Who says who those users are whom no other key may name. */
export const sourceOfKey = (id: KeyId): string => `key:${id}`;

/** Of those whose limits hold for a request, one that has some. */
export interface Subject {
  id: SubjectId;
  limits: KeyLimits;
  /** Its name, if it is a team. */
  team?: string;
  isUser?: true;
}

/** A user as a request shows it. */
export interface SeenUser {
  keyId: KeyId;
  source: string;
  /** Empty: none that can be told apart. */
  external: string;
  /** What its front end calls it. */
  name: string | undefined;
  /** How many users the key may have. */
  max: number;
}

/** A user as each of its requests needs it, found by what a request shows, or by the id. */
export interface FoundUser {
  id: UserId;
  isActive: boolean;
  /** Undefined: the `user_limits` of the key. */
  limits?: KeyLimits | undefined;
  /** Its own, whatever its limits. */
  priority?: Priority | null | undefined;
  team?: { id: TeamId; name: string; limits: KeyLimits } | undefined;
}

/** Whether what ends for a subject ends for a request. */
export const isOf = (id: SubjectId, { keyId, userId }: { keyId: KeyId; userId?: UserId | undefined }): boolean =>
  id === keyId || (userId !== undefined && id === subjectOf(userId));

export const defaultUsersMax = 1000;

/** What an API key may do. A key that may do everything has none. */
export interface KeyRules extends KeyLimits {
  /** What it is for: everything, requests under `/v1`, or posting GPU samples. */
  scope: "all" | "inference" | "gpu";
  /**
   * How the users behind it are told apart; null: not at all. `open-webui`, `open-webui@NAME` for users that several keys
   * share, `header:NAME`, or `body`.
   */
  users_from: string | null;
  /** Of signed identities: the latest, and the one before it while it is exchanged. */
  users_secrets: readonly string[] | null;
  /** Of each user that has no limits of its own. */
  user_limits: KeyLimits | null;
  users_max: number | null;
  users_required: true | null;
  /** In lower case; one that ends in `*` is a prefix. Null: every model. */
  allowed_models: readonly string[] | null;
  /** Globs such as `/v1/chat/*`; `*` crosses slashes. Null: every path. */
  allowed_paths: readonly string[] | null;
}

/** Whether a text matches a glob, whose `*` stands for any characters; in time that grows with the product of both lengths at most, however many `*` there are. */
export function matchesGlob(glob: string, text: string): boolean {
  let [at, read] = [0, 0];
  let [star, readAtStar] = [-1, 0];
  while (read < text.length) {
    if (glob[at] === "*") [star, readAtStar] = [at++, read];
    else if (glob[at] === text[read]) [at, read] = [at + 1, read + 1];
    else if (star === -1) return false;
    else [at, read] = [star + 1, ++readAtStar];
  }
  return /^\**$/.test(glob.slice(at));
}

/** Eight characters would reveal too much of a short key. */
export function maskKey(key: string): string {
  return key.length < 16 ? "…" : `${key.slice(0, 4)}…${key.slice(-4)}`;
}
