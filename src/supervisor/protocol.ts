import type { MetricsSnapshot } from "../telemetry/metrics.ts";

/** Where a process answers. */
export interface Addresses {
  url: string;
  adminUrl: string;
}

/** What one process knows of itself. */
export interface OwnFigures {
  metrics(): Promise<MetricsSnapshot>;
  /** Requests under `/v1` that have not ended. */
  inFlight(): number;
}

/** The same of all processes that share the port. */
export interface GroupFigures {
  /** In the Prometheus text format. */
  metricsText(): Promise<string>;
  inFlight(): Promise<number>;
}

/** What the parent asks of a process. */
export interface AskedOfProcess extends OwnFigures {
  /** An answer is all that is wanted. */
  alive(): void;
  /** Drain, and end. */
  stop(): void;
}

/** What a process asks of the parent, or tells it. */
export interface AskedOfParent extends GroupFigures {
  listening(at: Addresses): void;
  /** No new connections come in here any more. */
  draining(): void;
  /** Nothing will be counted here any more. */
  leaving(last: MetricsSnapshot): void;
}

/** How long the parent waits for a process, which may be busy, and a process for the parent, which waits for all. */
export const processDeadlineMs = 1000;
export const parentDeadlineMs = 3000;
