import type { WallClock } from "../../time/clock.ts";
import type { FoundKey } from "../key-store.ts";
import type { KeyGeneration } from "./key-generation.ts";

/** For changes by other programs, and for those of a process that was killed between its commit and the new generation. */
const maxAgeMs = 1000;
const maxKnown = 10_000;

export interface KnownKeys {
  /** Undefined for a key that is not known, or no longer accepted. */
  find(key: string): FoundKey | undefined;
  /** Looks a key up, and knows it from then on if it is active. */
  lookUp(key: string): FoundKey | undefined;
}

/**
 * Active keys in memory, until any key changes. Without a generation none is known.
 * @param lookUp finds an active key in the database
 */
export function createKnownKeys(
  lookUp: KnownKeys["lookUp"],
  generation: KeyGeneration | undefined,
  clock: WallClock,
): KnownKeys {
  if (generation === undefined) return { find: () => undefined, lookUp };
  const known = new Map<string, FoundKey>();
  let current = generation.read();
  let since = clock();

  function forgetOld(now: number): void {
    const latest = generation?.read() ?? current;
    if (latest === current && now - since < maxAgeMs && now >= since) return;
    known.clear();
    current = latest;
    since = now;
  }

  return {
    find(key) {
      const now = clock();
      forgetOld(now);
      const found = known.get(key);
      return (found?.expiresAt ?? Infinity) > now ? found : undefined;
    },
    lookUp(key) {
      // First: a change that the look-up does not see yet raises the generation after this.
      forgetOld(clock());
      const found = lookUp(key);
      if (found !== undefined && known.size < maxKnown) known.set(key, found);
      return found;
    },
  };
}
