import type { WallClock } from "../../time/clock.ts";
import { within } from "../../time/wait.ts";
import { type HeaderPairs, rateLimitHeaders } from "./admit.ts";
import type { KeyId, KeyLimits } from "../../domain/keys.ts";
import { hasLimit, requestLimits, tokenLimits } from "../../domain/limits.ts";
import type { Admission } from "../../domain/admissions.ts";

/** What counts against the limits of a key now. */
export type ReadUsed = (keyId: KeyId) => Promise<Admission["used"]>;

/** An error must not wait for a database that is away. */
const waitLimitMs = 1000;

/**
 * The headers that report how much is left, for an error before its request is admitted: an admission reports it otherwise.
 * @returns none if the database does not respond in time
 */
export async function readLimitsLeft(
  keyId: KeyId,
  limits: KeyLimits,
  { readUsed, wall }: { readUsed: ReadUsed; wall: WallClock },
): Promise<HeaderPairs> {
  if (!hasLimit(limits, tokenLimits) && !hasLimit(limits, requestLimits)) return [];
  try {
    const used = await within(waitLimitMs, readUsed(keyId), () => new Error("no response in time"));
    return rateLimitHeaders(limits, used, wall());
  } catch {
    return [];
  }
}
