import type { KeyId } from "../../domain/keys.ts";

/** The budget for request bodies that are held in memory to be rewritten. */
export interface HeldBytes {
  /** A share of the budget for one request of a key. */
  open(keyId: KeyId): HeldShare;
}

export interface HeldShare extends Disposable {
  /** Takes `bytes` more. @returns false, taking nothing, if the key's budget or the whole one is used up */
  take(bytes: number): boolean;
  /** Returns everything taken. */
  release(): void;
}

/** @param maxBytesPerKey so that one key leaves room for the others */
export function createHeldBytes(maxBytes: number, maxBytesPerKey: number): HeldBytes {
  let total = 0;
  const byKey = new Map<KeyId, number>();

  return {
    open(keyId) {
      let taken = 0;
      function release(): void {
        if (taken === 0) return;
        const rest = (byKey.get(keyId) ?? 0) - taken;
        total -= taken;
        taken = 0;
        if (rest > 0) byKey.set(keyId, rest);
        else byKey.delete(keyId);
      }
      return {
        take(bytes) {
          const ofKey = byKey.get(keyId) ?? 0;
          if (total + bytes > maxBytes || ofKey + bytes > maxBytesPerKey) return false;
          total += bytes;
          taken += bytes;
          byKey.set(keyId, ofKey + bytes);
          return true;
        },
        release,
        [Symbol.dispose]: release,
      };
    },
  };
}
