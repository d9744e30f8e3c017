import type { KeyId } from "../domain.ts";
import type { KeyEnding, LimitStore } from "../store/limit-store.ts";
import type { WallClock } from "../time/clock.ts";

export interface KeyEndings {
  /** Registers what runs when the running responses of a key are to end. */
  onEnded(listener: (keyId: KeyId) => void): void;
  /** Ends the running responses of a key in all processes; here at once, if the time has come. @param at epoch milliseconds */
  endRunning(keyId: KeyId, at: number): Promise<void>;
  close(): void;
}

export interface KeyEndingsOptions {
  store: Pick<LimitStore, "listEndings" | "endRunning">;
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

  function end(keyId: KeyId): void {
    for (const listener of listeners) listener(keyId);
  }

  async function poll(): Promise<void> {
    const now = clock();
    if (!isRunning()) {
      idleUntil = now;
      return;
    }
    const seenBefore = [...seen];
    const listed = await store.listEndings();
    for (const ending of listed) {
      const { id, keyId, endedAt } = ending;
      if (seen.has(id) || endedAt > now) continue;
      seen.add(id);
      if (endedAt <= idleUntil - skewMs) continue;
      // What runs began after the key was accepted again.
      if (endedAt <= idleUntil && isAccepted(ending, now)) continue;
      end(keyId);
    }
    const listedIds = new Set(listed.map(({ id }) => id));
    for (const id of seenBefore) if (!listedIds.has(id)) seen.delete(id);
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
    async endRunning(keyId, at) {
      const id = await store.endRunning(keyId, at);
      // A poll may have seen it before its id is known here.
      if (at > clock() || seen.has(id)) return;
      // The next poll is too late: by then the key may be accepted again, and what runs may have begun after that.
      seen.add(id);
      end(keyId);
    },
    close: () => clearInterval(timer),
  };
}

const isAccepted = ({ isActive, expiresAt }: KeyEnding, now: number): boolean =>
  isActive === true && (expiresAt === null || expiresAt > now);
