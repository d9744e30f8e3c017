import type { KeyEnding, KeyStore } from "../store/keys/contract.ts";
import type { MonotonicClock, WallClock } from "../time/clock.ts";
import { repeat } from "../time/wait.ts";
import type { SubjectId } from "../domain/keys.ts";

/** @param id a key, or a user. @param begunUntil its requests that began later go on; by the monotonic clock */
type RevocationListener = (id: SubjectId, begunUntil: number) => void;

/** By how much the clocks of instances may differ. */
const skewMs = 5000;

/**
 * Ends the running responses of keys on behalf of whichever process was asked to. Polls, since a key may be switched off by
 * any process or instance; without running requests it does not query the database.
 *
 * Once the key is accepted again, only what had begun before the last poll without the ending is sure to be older than it,
 * so what began since goes on. The clocks of instances are not compared for this: they differ by more than a poll takes.
 */
export function createRevocations(options: {
  store: Pick<KeyStore, "listEndings" | "endRunning">;
  clock: WallClock;
  monotonic: MonotonicClock;
  /** Whether there is anything to end. */
  isRunning: () => boolean;
  pollMs?: number;
}) {
  const { store, clock, monotonic, isRunning, pollMs = 400 } = options;
  const listeners: RevocationListener[] = [];
  /** When each that is listed was not yet. One that is done must not come again when clocks are set back. */
  const seen = new Map<number, { orderedAfter: number; isDone: boolean }>();
  /** Nothing ran here until then, so revocations long before it have nothing to end. */
  let idleUntil = clock();
  let lastPollAt = monotonic();

  function end(id: SubjectId, begunUntil: number): void {
    for (const listener of listeners) listener(id, begunUntil);
  }

  async function poll(): Promise<void> {
    const [now, pollAt] = [clock(), monotonic()];
    if (isRunning()) await endListed(now, pollAt);
    else idleUntil = now;
    lastPollAt = pollAt;
  }

  async function endListed(now: number, pollAt: number): Promise<void> {
    const listed = await store.listEndings();
    for (const ending of listed) {
      const before = seen.get(ending.id);
      const { orderedAfter, isDone } = before ?? { orderedAfter: lastPollAt, isDone: false };
      const isDue = !isDone && ending.endedAt <= now;
      const accepted = isAccepted(ending, now);
      if (isDue && ending.endedAt > idleUntil - skewMs) end(ending.keyId, accepted ? orderedAfter : pollAt);
      // While the key is off, the next poll ends what began between the start of this one and the ending.
      seen.set(ending.id, { orderedAfter, isDone: isDone || (isDue && (accepted || before !== undefined)) });
    }
    const listedIds = new Set(listed.map(({ id }) => id));
    for (const id of seen.keys()) if (!listedIds.has(id)) seen.delete(id);
  }

  const polling = repeat(pollMs, poll);
  return {
    /** Registers what runs when the running responses of a key are to end. */
    onRevoked: (listener: RevocationListener): void => void listeners.push(listener),
    /** Ends the running responses of a key or user in all processes; here at once, if the time has come. @param at epoch milliseconds */
    async endRunning(id: SubjectId, at: number): Promise<void> {
      const orderedAt = monotonic();
      await store.endRunning(id, at);
      // The next poll is too late: by then the key may be accepted again, and it would not know what is older than this.
      if (at <= clock()) end(id, orderedAt);
    },
    close: (): void => void polling.stop(),
  };
}

const isAccepted = ({ isActive, expiresAt }: KeyEnding, now: number): boolean =>
  isActive === true && (expiresAt === null || expiresAt > now);
