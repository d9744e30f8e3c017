import type { WallClock } from "../../time/clock.ts";
import type { FoundKey, KeyStore } from "../keys/contract.ts";

const maxAgeMs = 5 * 60_000;
const maxKeys = 10_000;
const timeoutMs = 900;
/** While the last query failed. */
const unavailableTimeoutMs = 200;

/**
 * Accepts keys that the database confirmed within the last five minutes while it does not respond. Every lookup queries the
 * database first, so a key that is switched off stays refused.
 */
export function createVerifiedKeys({
  find,
  clock,
}: {
  /** Queries the database. Rejects if it does not respond within `timeoutMs`. */
  find: (key: string, timeoutMs: number) => Promise<FoundKey | undefined>;
  clock: WallClock;
}): KeyStore["findActive"] {
  let recent = new Map<string, { found: FoundKey; at: number }>();
  /** Not confirmed since. Two, because a Map keeps in its chains what is deleted and set anew. */
  let earlier: typeof recent = new Map();
  let unavailable = false;

  function cache(key: string, found: FoundKey | undefined): void {
    earlier.delete(key);
    if (found === undefined) return void recent.delete(key);
    if (recent.size >= maxKeys / 2) [earlier, recent] = [recent, new Map()];
    recent.set(key, { found, at: clock() });
  }

  return async (key) => {
    try {
      const found = await find(key, unavailable ? unavailableTimeoutMs : timeoutMs);
      unavailable = false;
      cache(key, found);
      return found;
    } catch (error) {
      unavailable = true;
      const cached = recent.get(key) ?? earlier.get(key);
      if (cached === undefined || clock() - cached.at > maxAgeMs) throw error;
      const { expiresAt } = cached.found;
      return expiresAt !== null && expiresAt <= clock() ? undefined : cached.found;
    }
  };
}
