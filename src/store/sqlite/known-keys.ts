import type { WallClock } from "../../time/clock.ts";
import type { FoundKey } from "../keys/contract.ts";
import type { KeysVersion } from "./keys-version.ts";

/** Bounds how long this misses changes by other programs, and those of a process that was killed between its commit and the new version. */
const maxAgeMs = 1000;
const maxKnown = 10_000;

type FindKey = (key: string) => FoundKey | undefined;

/**
 * Finds active keys, and knows them until any key changes.
 * @param lookUp finds an active key in the database
 * @param version without one, each key is looked up each time
 */
export function knowKeys(lookUp: FindKey, version: KeysVersion | undefined, clock: WallClock): FindKey {
  if (version === undefined) return lookUp;
  const { read } = version;
  const known = new Map<string, FoundKey>();
  let current = read();
  let since = clock();

  return (key) => {
    const now = clock();
    // Before the look-up: a change that it does not see yet raises the version after this.
    const latest = read();
    if (latest !== current || now - since >= maxAgeMs || now < since) {
      known.clear();
      current = latest;
      since = now;
    }
    const old = known.get(key);
    if (old !== undefined && (old.expiresAt ?? Infinity) > now) return old;
    const found = lookUp(key);
    if (found !== undefined && known.size < maxKnown) known.set(key, found);
    return found;
  };
}
