import type { WallClock } from "../../time/clock.ts";
import type { FoundUser } from "../../domain/keys.ts";
import type { SubjectStore } from "./contract.ts";

/** Bounds how long this misses changes by other programs, and those of a process that was killed between its commit and the new version. */
const maxAgeMs = 1000;
export const maxKnown = 10_000;

/**
 * What was found since the version of all keys, teams and users rose last, and at most for a second. To be asked for before
 * each look-up: a change that this does not see yet raises the version after it.
 */
export function createKnown<Found>(
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

/** @param read the version; undefined: nobody tells when something changes */
export function knowUsers(
  see: SubjectStore["see"],
  read: (() => number) | undefined,
  clock: WallClock,
): SubjectStore["see"] {
  if (read === undefined) return see;
  const known = createKnown<FoundUser>(read, clock);
  return (seen) => {
    const { found, version } = known();
    const id = typeof seen === "number" ? String(seen) : `${seen.keyId} ${seen.source} ${seen.external}`;
    const user = found.get(id) ?? see(seen);
    if (!(user instanceof Promise)) return user;
    return user.then((one) => {
      if (read() === version && found.size < maxKnown) found.set(id, one);
      return one;
    });
  };
}
