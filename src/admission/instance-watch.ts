import type { Log } from "../log/log.ts";
import type { Instance, LimitStore } from "../store/limits/contract.ts";
import type { MonotonicClock } from "../time/clock.ts";

export type InstanceWatch = ReturnType<typeof createInstanceWatch>;

const hurriedBeatMs = 1000;

/**
 * Reports that this process is alive, and releases what dead ones held.
 *
 * Until the first request of a key with limits, it only looks whether others hold leases, and beats as soon as one does. A
 * process is dead if its beat does not change for a while by our own clock: the wall clocks of two machines may differ, and
 * jump.
 */
export function createInstanceWatch(options: {
  store: Pick<LimitStore, "beat" | "remove" | "listInstances">;
  instance: string;
  monotonic: MonotonicClock;
  log: Log;
  beatMs: number;
  deadAfterMs: number;
  /** Called when the database lists this process for the first time, or again: others may have released what it holds. */
  onListed: () => void;
  /** Called after each beat that succeeded. @param instances how many processes live, this one included */
  onBeat: (instances: number) => void;
}) {
  const { store, instance, monotonic, log, beatMs, deadAfterMs, onListed, onBeat } = options;
  /** When we saw the beat of each other instance change. */
  const seen = new Map<string, { beat: number; at: number }>();
  let observedAt = 0;
  /** The beats since the last one that succeeded: one that fails may have been committed. */
  let attempts = 0;
  let started: Promise<void> | undefined;
  let timer: Timer | undefined;
  let closed = false;

  function schedule(ms: number): void {
    clearTimeout(timer);
    if (!closed) timer = setTimeout(() => void beat(), ms).unref();
  }

  async function beat(): Promise<void> {
    try {
      attempts += 1;
      const instances = await store.beat(instance);
      const own = instances.find(({ id }) => id === instance);
      // One of these beats has listed this process.
      if (own !== undefined && own.beat <= attempts) onListed();
      attempts = 0;
      const dead = listDead(instances);
      if (dead.length > 0) {
        await store.remove(dead);
        for (const id of dead) seen.delete(id);
        log.warn("Process disappeared; released what its requests held", { processes: dead.length });
      }
      onBeat(Math.max(1, instances.length - dead.length));
      schedule(beatMs);
    } catch {
      // The next request that needs the database logs the failure.
      schedule(hurriedBeatMs);
    }
  }

  function listDead(instances: readonly Instance[]): string[] {
    const now = monotonic();
    // After a pause of ours, or of the database, the time of the others begins anew.
    if (now - observedAt > deadAfterMs / 2) seen.clear();
    observedAt = now;
    const others = instances.filter(({ id }) => id !== instance);
    for (const { id, beat: latest } of others) {
      if (seen.get(id)?.beat !== latest) seen.set(id, { beat: latest, at: now });
    }
    return others.map(({ id }) => id).filter((id) => now - (seen.get(id)?.at ?? now) >= deadAfterMs);
  }

  const start = (): Promise<void> => (started ??= beat());

  /** Whoever begins later may die when no other process has ever had a key with limits. */
  async function look(): Promise<void> {
    const instances = await store.listInstances().catch(() => []);
    if (started !== undefined || closed) return;
    if (instances.length > 0) void start();
    else timer = setTimeout(() => void look(), deadAfterMs).unref();
  }

  void look();

  return {
    /** Resolves when the database lists this process, or has failed to. Never rejects. */
    start,
    /** Beats every second until a beat succeeds. */
    hurry: () => schedule(hurriedBeatMs),
    async close(): Promise<void> {
      closed = true;
      clearTimeout(timer);
      if (started === undefined) return;
      await started;
      await store.remove([instance]).catch(() => {});
    },
  };
}
