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
  let seen: ReadonlySet<number> = new Set();
  /** Nothing ran here until then, so endings before it have nothing to end. */
  let idleUntil = clock();
  let polling = false;

  async function poll(): Promise<void> {
    const now = clock();
    if (!isRunning()) {
      idleUntil = now;
      return;
    }
    const due = (await store.listEndings()).filter(({ endedAt }) => endedAt <= now);
    for (const ending of due) {
      const { id, keyId, endedAt } = ending;
      if (seen.has(id) || endedAt <= idleUntil - skewMs) continue;
      // What runs began after the key was accepted again.
      if (endedAt <= idleUntil && isAccepted(ending, now)) continue;
      for (const listener of listeners) listener(keyId);
    }
    seen = new Set(due.map(({ id }) => id));
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
