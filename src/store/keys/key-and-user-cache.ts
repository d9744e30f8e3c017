// Keys and users as they were found last, so that a request mostly asks no database for them.
//
// It keeps true: a change of any key, team or user by a process of this machine is seen by the next request, because it
// raises the version; one by another program, or by a process that was killed before it raised it, within a second.

import type { WallClock } from "../../time/clock.ts";
import type { FoundUser } from "../../domain/keys.ts";
import type { FoundKey, SubjectStore } from "./contract.ts";

const maxAgeMs = 1000;
const maxCached = 10_000;

/** Rises with each change of a key, team or user; undefined: nobody tells when something changes. */
type ReadVersion = (() => number) | undefined;

/** @returns what is found since the version rose, at most for a second: to be asked for before each look-up */
function createCache<Found>(
  read: () => number,
  clock: WallClock,
): () => { found: Map<string, Found>; version: number } {
  const found = new Map<string, Found>();
  let [version, since] = [read(), clock()];
  return () => {
    const [latest, now] = [read(), clock()];
    if (latest !== version || now - since >= maxAgeMs || now < since) {
      found.clear();
      [version, since] = [latest, now];
    }
    return { found, version };
  };
}

type FindKey = (key: string) => FoundKey | undefined;

/** @param lookUp finds an active key in the database */
export function cacheKeys(lookUp: FindKey, read: ReadVersion, clock: WallClock): FindKey {
  if (read === undefined) return lookUp;
  const cached = createCache<FoundKey>(read, clock);
  return (key) => {
    const { found } = cached();
    const old = found.get(key);
    if (old !== undefined && (old.expiresAt ?? Infinity) > clock()) return old;
    const latest = lookUp(key);
    if (latest !== undefined && found.size < maxCached) found.set(key, latest);
    return latest;
  };
}

export function cacheUsers(see: SubjectStore["see"], read: ReadVersion, clock: WallClock): SubjectStore["see"] {
  if (read === undefined) return see;
  const cached = createCache<FoundUser>(read, clock);
  return (seen) => {
    const { found, version } = cached();
    const id = typeof seen === "number" ? String(seen) : `${seen.keyId} ${seen.source} ${seen.external}`;
    const user = found.get(id) ?? see(seen);
    if (!(user instanceof Promise)) return user;
    return user.then((one) => {
      if (read() === version && found.size < maxCached) found.set(id, one);
      return one;
    });
  };
}
