import { findCredential } from "../../domain/credential.ts";
import type { KeyId, KeyRules, Subject, TeamId, UserId } from "../../domain/keys.ts";
import { anyHasLimit, type KeyLimits, requestLimits } from "../../domain/limits.ts";
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
export async function lookUp<Asked, Found>(
  find: (asked: Asked) => Found | Promise<Found>,
  asked: Asked,
  noun: "Key" | "User",
  log: Log,
): Promise<Found> {
  try {
    return await find(asked);
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
  const key = await lookUp(findKey, credential, "Key", log);
  if (key === undefined) throw new ProxyError("invalid_api_key");
  if (key.rules?.scope === "gpu") throw new ProxyError("scope_not_allowed");
  return key;
}

/** Only count tokens. Written otherwise they are requests like any other, whatever a backend makes of them. */
const countingPaths: ReadonlySet<string> = new Set(["/v1/messages/count_tokens", "/v1/responses/input_tokens"]);
const noRequestLimits = Object.fromEntries(requestLimits.map((name) => [name, null]));

/** Those whose limits a request asks: none of requests where it only counts tokens, since agents send 25 such at once. */
export function limitedSubjects(
  { id, subjects }: ActiveKey,
  limits: KeyLimits,
  path: string,
): readonly Subject[] | undefined {
  const all = subjects ?? [{ id, limits }];
  if (!countingPaths.has(path)) return all;
  const others = all.map((one) => Object.assign({}, one, { limits: { ...one.limits, ...noRequestLimits } }));
  return anyHasLimit(others) ? others : undefined;
}
