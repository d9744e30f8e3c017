import type { KeyId } from "../domain/keys.ts";
import type { AdmissionId } from "../domain/admissions.ts";

/** What the requests of a busy key hold together, and its spare admissions: one row in the database. */
export interface Reserve extends AdmissionId {
  /** Reserved by all of them. */
  tokens: number;
  /** The database may have more tokens than these. */
  isStale: boolean;
}

/**
 * The reserves of the keys. The database has at least what they hold: it hears of more before that is used, and of less with
 * the next batch.
 */
export interface Reserves {
  find(keyId: KeyId): Reserve | undefined;
  add(id: AdmissionId): Reserve;
  /** @param tokens that are reserved no more */
  release(reserve: Reserve, tokens: number): void;
  /** Has the number of tokens written with the next batch. */
  markStale(reserve: Reserve): void;
  markAllStale(): void;
  /** @returns those to be written; what ends from now on makes them stale again */
  takeStale(): Reserve[];
  hasStale(): boolean;
  /** To be called when their tokens are written. @returns those that are gone, because they hold nothing */
  removeEmpty(written: readonly Reserve[]): Reserve[];
}

export function createReserves(): Reserves {
  const byKey = new Map<KeyId, Reserve>();
  let stale: Reserve[] = [];

  function markStale(reserve: Reserve): void {
    if (reserve.isStale) return;
    reserve.isStale = true;
    stale.push(reserve);
  }

  return {
    find: (keyId) => byKey.get(keyId),
    add(id) {
      const reserve = { ...id, tokens: 0, isStale: false };
      byKey.set(id.keyId, reserve);
      return reserve;
    },
    release(reserve, tokens) {
      reserve.tokens -= tokens;
      markStale(reserve);
    },
    markStale,
    markAllStale() {
      for (const reserve of byKey.values()) markStale(reserve);
    },
    takeStale() {
      const taken = stale;
      stale = [];
      for (const reserve of taken) reserve.isStale = false;
      return taken;
    },
    hasStale: () => stale.length > 0,
    removeEmpty(written) {
      const empty = written.filter(({ tokens }) => tokens === 0);
      for (const one of empty) if (byKey.get(one.keyId) === one) byKey.delete(one.keyId);
      return empty;
    },
  };
}
