import {
  findCredential,
  type KeyId,
  type KeyRules,
  type Subject,
  type TeamId,
  type UserId,
} from "../../domain/keys.ts";
import type { Log } from "../../log/log.ts";
import { ProxyError } from "../errors.ts";

export interface ActiveKey {
  id: KeyId;
  /** Null: the key may do everything. Of each limit the tightest of its subjects. */
  rules: KeyRules | null;
  /** Its own, by now; unset: none. */
  teamId?: TeamId;
  /** Whose request it is; unset: nobody's in particular. */
  userId?: UserId;
  /** Those with limits; unset: the key alone. */
  subjects?: readonly Subject[];
}

/** Undefined for an unknown and for an inactive key alike. Throws if storage cannot be read. */
export type FindKey = (key: string) => ActiveKey | undefined | Promise<ActiveKey | undefined>;

const noKey = {
  message: "The request has no API key; send one as Authorization: Bearer KEY, or as x-api-key: KEY.",
};

/** @throws ProxyError `storage_unavailable` if it fails */
export async function lookUp<Found>(
  find: () => Found | Promise<Found>,
  noun: "Key" | "User",
  log: Log,
): Promise<Found> {
  try {
    return await find();
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    log.error(`${noun} look-up failed; request refused`, { error: message });
    throw new ProxyError("storage_unavailable");
  }
}

/**
 * The key that a request presents.
 * @throws ProxyError `invalid_api_key` if it is missing, unknown or inactive; `storage_unavailable` if it cannot be
 * checked; `scope_not_allowed` if it is only for GPU samples
 */
export async function authenticate(
  headers: Headers,
  { findKey, log }: { findKey: FindKey; log: Log },
): Promise<ActiveKey> {
  const credential = findCredential(headers);
  if (credential === undefined) throw new ProxyError("invalid_api_key", noKey);
  const key = await lookUp(() => findKey(credential), "Key", log);
  if (key === undefined) throw new ProxyError("invalid_api_key");
  if (key.rules?.scope === "gpu") throw new ProxyError("scope_not_allowed");
  return key;
}
