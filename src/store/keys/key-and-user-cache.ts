// Keys and users as they were found last, so that a request mostly asks no database for them.
//
// It keeps true: a change of any key, team or user by a process that shares the version is seen by the next request; one by
// another program, or by a process that was killed before it raised the version, within a second.

import type { WallClock } from "../../time/clock.ts";
import type { FoundUser } from "../../domain/keys.ts";
import type { FoundKey, SubjectStore } from "./contract.ts";

const maxAgeMs = 1000;
const maxCached = 10_000;

/** One number, which rises with each change of a key, team or user; undefined: nobody tells when something changes. */
type Version = Int32Array | undefined;

/** @returns what is found since the version rose, at most for a second: to be asked for before each look-up */
function createCache<Found>(
  shared: Int32Array,
  clock: WallClock,
): () => { found: Map<string, Found>; version: number } {
  const found = new Map<string, Found>();
  let [version, since] = [Atomics.load(shared, 0), clock()];
  return () => {
    const [latest, now] = [Atomics.load(shared, 0), clock()];
    if (latest !== version || now - since >= maxAgeMs || now < since) {
      found.clear();
      [version, since] = [latest, now];
    }
    return { found, version };
  };
}

type FindKey = (key: string) => FoundKey | undefined;

/** @param lookUp finds an active key in the database */
export function cacheKeys(lookUp: FindKey, shared: Version, clock: WallClock): FindKey {
  if (shared === undefined) return lookUp;
  const cached = createCache<FoundKey>(shared, clock);
  return (key) => {
    const { found } = cached();
    const old = found.get(key);
    if (old !== undefined && (old.expiresAt ?? Infinity) > clock()) return old;
    const latest = lookUp(key);
    if (latest !== undefined && found.size < maxCached) found.set(key, latest);
    return latest;
  };
}

export function cacheUsers(see: SubjectStore["see"], shared: Version, clock: WallClock): SubjectStore["see"] {
  if (shared === undefined) return see;
  const cached = createCache<FoundUser>(shared, clock);
  return (seen) => {
    const { found, version } = cached();
    const id = typeof seen === "number" ? String(seen) : `${seen.keyId} ${seen.source} ${seen.external}`;
    const user = found.get(id) ?? see(seen);
    if (!(user instanceof Promise)) return user;
    return user.then((one) => {
      if (Atomics.load(shared, 0) === version && found.size < maxCached) found.set(id, one);
      return one;
    });
  };
}
