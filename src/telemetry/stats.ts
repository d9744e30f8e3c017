import type { MetricsSnapshot } from "./metrics.ts";
import type { IdentifiedRequest } from "./observers.ts";

/** Counted by one process. */
export interface ProcessStats {
  metrics(): Promise<MetricsSnapshot>;
  /** Requests under `/v1` that have not ended. */
  inFlight(): number;
  /** The oldest of them. */
  running(): IdentifiedRequest[];
  /** Ends one of them. @returns whether it ran in this process */
  endRequest(id: string): boolean;
}

/** Those of another process. Its methods may reject. */
export type StatsSource = {
  readonly [Name in keyof ProcessStats]: (
    ...args: Parameters<ProcessStats[Name]>
  ) => Promise<Awaited<ReturnType<ProcessStats[Name]>>>;
};

/** The same, combined over all processes that share the port. */
export interface AggregateStats extends Omit<StatsSource, "metrics"> {
  /** In the Prometheus text format. */
  metricsText(): Promise<string>;
}
