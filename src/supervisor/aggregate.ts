import { aggregatedCounters, aggregatedMetricsText, type MetricsSnapshot } from "../telemetry/metrics.ts";
import type { StatsSource } from "../telemetry/stats.ts";

export type Aggregate = ReturnType<typeof createAggregate>;

export function createAggregate() {
  const running = new Set<StatsSource>();
  /** Stands in for a process that does not reply, and keeps the counts of one that was killed. */
  const latest = new Map<StatsSource, MetricsSnapshot>();
  let exited: MetricsSnapshot = [];
  let folding = Promise.resolve();

  async function refresh(process: StatsSource): Promise<void> {
    const snapshot = await process.metrics().catch(() => undefined);
    if (snapshot !== undefined && running.has(process)) latest.set(process, snapshot);
  }

  async function fold(process: StatsSource): Promise<void> {
    const snapshot = latest.get(process) ?? [];
    const sum = await aggregatedCounters([exited, snapshot]);
    // Both at once, so that a concurrent scrape counts the process exactly once.
    exited = sum;
    latest.delete(process);
  }

  return {
    add: (process: StatsSource): void => void running.add(process),
    /** Takes the final metrics of a process, which is not queried afterwards. */
    setFinalMetrics(process: StatsSource, metrics: MetricsSnapshot): void {
      running.delete(process);
      latest.set(process, metrics);
    },
    /** The process has exited. Its counters stay in the sums, because readers take a falling counter for a restart. */
    remove(process: StatsSource): Promise<void> {
      running.delete(process);
      // If they cannot be summed, for example after an upgrade between two processes, they stay separate.
      folding = folding.then(() => fold(process)).catch(() => {});
      return folding;
    },
    async metricsText() {
      await Promise.all([...running].map(refresh));
      return aggregatedMetricsText([exited, ...latest.values()]);
    },
    async inFlight() {
      const counts = await Promise.all([...running].map((process) => process.inFlight().catch(() => 0)));
      return counts.reduce((sum, count) => sum + count, 0);
    },
    async running() {
      const lists = await Promise.all([...running].map((process) => process.running().catch(() => [])));
      return lists.flat().toSorted((a, b) => b.ageMs - a.ageMs);
    },
    async endRequest(id: string): Promise<boolean> {
      const ended = await Promise.all([...running].map((process) => process.endRequest(id).catch(() => false)));
      return ended.includes(true);
    },
  };
}
