import type { Log } from "../log/log.ts";
import { addTo, type FlushedUsage, incrementOf } from "../store/usage/batch.ts";
import type { WallClock } from "../time/clock.ts";
import type { KeyId } from "../domain/keys.ts";
import { type UsageIncrement, type UsageSum, addSums, noSum } from "../domain/usage.ts";

/** Usage that the database refuses, such as a sum out of range. It is kept until its key's usage can be written again. */
export interface RefusedUsage {
  /** The keys that it belongs to. */
  readonly keys: ReadonlySet<KeyId>;
  /** Logs the numbers, so that an operator can add them. */
  add(usage: FlushedUsage, reason: string): void;
  /** @returns what is kept of the keys in `written`, which can be written again; it is no longer kept */
  take(written: FlushedUsage): readonly UsageIncrement[];
  requests(): number;
  /** Logs all that is kept. @returns whether there is any */
  logAll(): boolean;
}

/** A key whose usage keeps being refused is logged once in this time. */
const logIntervalMs = 60_000;

interface RefusedKey {
  /** By minute and model. */
  increments: Map<string, UsageIncrement>;
  /** Not logged yet. */
  unlogged: UsageSum;
  loggedAt: number;
}

export function createRefusedUsage(log: Log, clock: WallClock): RefusedUsage {
  const byKey = new Map<KeyId, RefusedKey>();
  const keys = new Set<KeyId>();

  function findOrAdd(keyId: KeyId): RefusedKey {
    const found = byKey.get(keyId) ?? { increments: new Map(), unlogged: noSum, loggedAt: -Infinity };
    byKey.set(keyId, found);
    keys.add(keyId);
    return found;
  }

  return {
    keys,
    add({ increments, responses }, reason) {
      const reads = responses.filter(({ created }) => created === undefined);
      for (const increment of [...increments, ...reads.map((one) => incrementOf(one, one))]) {
        const { keyId, minute, model } = increment;
        const key = findOrAdd(keyId);
        const id = `${minute}:${model ?? ""}`;
        const kept = key.increments.get(id);
        if (kept === undefined) key.increments.set(id, increment);
        else addTo(kept, increment);
        key.unlogged = addSums(key.unlogged, increment);
        if (clock() - key.loggedAt < logIntervalMs) continue;
        log.error("Database refuses usage; keeping it in memory", { reason, keyId, ...key.unlogged });
        key.unlogged = noSum;
        key.loggedAt = clock();
      }
    },
    take({ increments, responses }) {
      const taken: UsageIncrement[] = [];
      for (const { keyId } of [...increments, ...responses]) {
        taken.push(...(byKey.get(keyId)?.increments.values() ?? []));
        byKey.delete(keyId);
        keys.delete(keyId);
      }
      return taken;
    },
    requests: () => [...byKey.values()].reduce((sum, { increments }) => sum + sumOf(increments).requestCount, 0),
    logAll() {
      for (const [keyId, { increments }] of byKey) {
        log.error("Usage that the database refused is lost", { keyId, ...sumOf(increments) });
      }
      return byKey.size > 0;
    },
  };
}

const sumOf = (increments: ReadonlyMap<string, UsageSum>): UsageSum => [...increments.values()].reduce(addSums, noSum);
