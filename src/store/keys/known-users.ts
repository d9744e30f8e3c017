import type { WallClock } from "../../time/clock.ts";
import type { FoundUser, SubjectStore } from "./contract.ts";

/** Within this, a change by another process that raised no version is seen. */
const maxAgeMs = 1000;
const maxKnown = 10_000;

/**
 * Knows users for a second, and no longer than until any key, team or user changes.
 * @param version rises with each change; undefined: nobody tells
 */
export function knowUsers(
  see: SubjectStore["see"],
  version: { read: () => number } | undefined,
  clock: WallClock,
): SubjectStore["see"] {
  const known = new Map<string, FoundUser>();
  let [current, since] = [0, 0];
  return (seen) => {
    const [latest, now] = [version?.read() ?? 0, clock()];
    if (latest !== current || now - since >= maxAgeMs || now < since) {
      known.clear();
      [current, since] = [latest, now];
    }
    const id = `${seen.keyId} ${seen.source} ${seen.external}`;
    const found = known.get(id) ?? see(seen);
    if (!(found instanceof Promise)) return found;
    return found.then((user) => {
      if (version?.read() === latest && known.size < maxKnown) known.set(id, user);
      return user;
    });
  };
}
