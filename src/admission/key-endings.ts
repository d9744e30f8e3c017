import type { KeyId } from "../domain.ts";
import type { KeyEnding, LimitStore } from "../store/limit-store.ts";
import type { WallClock } from "../time/clock.ts";

export interface KeyEndings {
  /** Registers what runs when the running responses of a key are to end. */
  onEnded(listener: (keyId: KeyId) => void): void;
  close(): void;
}

export interface KeyEndingsOptions {
  store: Pick<LimitStore, "listEndings">;
  clock: WallClock;
  /** Whether there is anything to end. */
  isRunning: () => boolean;
  pollMs?: number;
}

/** By how much the clocks of instances may differ. */
const skewMs = 5000;

/**
 * Ends the running responses of keys on behalf of whichever process was asked to. Polls, since a key may be switched off by
 * any process or instance; without running requests it does not query the database.
 */
export function createKeyEndings(options: KeyEndingsOptions): KeyEndings {
  const { store, clock, isRunning, pollMs = 400 } = options;
  const listeners: ((keyId: KeyId) => void)[] = [];
  /** The endings that came due here, as long as they are listed: a clock that is set back must not let them come again. */
  const seen = new Set<number>();
  /** Nothing ran here until then, so endings before it have nothing to end. */
  let idleUntil = clock();
  let polling = false;

  async function poll(): Promise<void> {
    const now = clock();
    if (!isRunning()) {
      idleUntil = now;
      return;
    }
    const listed = await store.listEndings();
    for (const ending of listed) {
      const { id, keyId, endedAt } = ending;
      if (seen.has(id) || endedAt > now) continue;
      seen.add(id);
      if (endedAt <= idleUntil - skewMs) continue;
      // What runs began after the key was accepted again.
      if (endedAt <= idleUntil && isAccepted(ending, now)) continue;
      for (const listener of listeners) listener(keyId);
    }
    const listedIds = new Set(listed.map(({ id }) => id));
    for (const id of seen) if (!listedIds.has(id)) seen.delete(id);
  }

  const timer = setInterval(() => {
    if (polling) return;
    polling = true;
    // If the database fails, the next poll tries again.
    void poll()
      .catch(() => {})
      .finally(() => {
        polling = false;
      });
  }, pollMs).unref();
  return {
    onEnded: (listener) => void listeners.push(listener),
    close: () => clearInterval(timer),
  };
}

const isAccepted = ({ isActive, expiresAt }: KeyEnding, now: number): boolean =>
  isActive === true && (expiresAt === null || expiresAt > now);
