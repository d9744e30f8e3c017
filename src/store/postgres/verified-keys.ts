import type { WallClock } from "../../time/clock.ts";
import type { KeyStore } from "../store.ts";

const trustedMs = 5 * 60_000;
const mostKeys = 10_000;

type Found = { id: number };

export interface VerifiedKeysOptions {
  /** Asks the database. Rejects where it does not answer within `timeoutMs`. */
  ask: (key: string, timeoutMs: number) => Promise<Found | undefined>;
  clock: WallClock;
  /** How long the database has while it is well, and while it is known to be away. */
  patienceMs?: number;
  awayPatienceMs?: number;
}

/**
 * Keys that the database knew within the last five minutes still open while it does not answer. An answer always goes
 * before what is remembered, so a key that was switched off stays so.
 */
export function createVerifiedKeys(options: VerifiedKeysOptions): KeyStore["findActive"] {
  const { ask, clock, patienceMs = 900, awayPatienceMs = 200 } = options;
  /** In the order of their last verification. */
  const verified = new Map<string, Found & { at: number }>();
  let away = false;

  function remember(key: string, found: Found | undefined): void {
    verified.delete(key);
    if (found === undefined) return;
    verified.set(key, { id: found.id, at: clock() });
    const [oldest] = verified.keys();
    if (verified.size > mostKeys && oldest !== undefined) verified.delete(oldest);
  }

  return async (key) => {
    try {
      const found = await ask(key, away ? awayPatienceMs : patienceMs);
      away = false;
      remember(key, found);
      return found;
    } catch (error) {
      away = true;
      const known = verified.get(key);
      if (known === undefined || clock() - known.at > trustedMs) throw error;
      return { id: known.id };
    }
  };
}
