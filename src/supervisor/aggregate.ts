import { lastingCounts, type MetricsSnapshot, summedMetricsText } from "../telemetry/metrics.ts";
import type { GroupFigures, OwnFigures } from "./protocol.ts";

/** A process whose figures go into the sums; it may fail to answer. */
export type Counted = { readonly [Name in keyof OwnFigures]: () => Promise<Awaited<ReturnType<OwnFigures[Name]>>> };

export interface Aggregate extends GroupFigures {
  add(process: Counted): void;
  /** A last word of it, after which it is not asked any more. */
  keep(process: Counted, last: MetricsSnapshot): void;
  /** It has ended. What it counted stays in the sums: a counter that falls looks like a restart to its readers. */
  remove(process: Counted): Promise<void>;
}

export function createAggregate(): Aggregate {
  const running = new Set<Counted>();
  /** What each process said last; stands in for one that does not answer, and for what one killed had counted. */
  const latest = new Map<Counted, MetricsSnapshot>();
  let ended: MetricsSnapshot = [];
  let folding = Promise.resolve();

  async function hear(process: Counted): Promise<void> {
    const snapshot = await process.metrics().catch(() => undefined);
    if (snapshot !== undefined && running.has(process)) latest.set(process, snapshot);
  }

  async function fold(process: Counted): Promise<void> {
    const snapshot = latest.get(process) ?? [];
    const sum = await lastingCounts([ended, snapshot]);
    // In one step: a scrape in between must count it once.
    ended = sum;
    latest.delete(process);
  }

  return {
    add: (process) => void running.add(process),
    keep(process, last) {
      running.delete(process);
      latest.set(process, last);
    },
    remove(process) {
      running.delete(process);
      // Where they do not add up, as after an upgrade between two processes, they stay beside each other.
      folding = folding.then(() => fold(process)).catch(() => {});
      return folding;
    },
    async metricsText() {
      await Promise.all([...running].map(hear));
      return summedMetricsText([ended, ...latest.values()]);
    },
    async inFlight() {
      const counts = await Promise.all([...running].map((process) => process.inFlight().catch(() => 0)));
      return counts.reduce((sum, count) => sum + count, 0);
    },
  };
}
