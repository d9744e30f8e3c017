import type { Entry, ListedRequest, Rank } from "../domain/admissions.ts";
import type { BackendSign, BackendStatus, Choice } from "../domain/backends.ts";
import type { Catalog } from "../domain/models.ts";
import type { ReportedInput } from "../domain/usage.ts";
import type { MetricsSnapshot } from "../telemetry/metrics.ts";
import type { Facts } from "../watching/state-rules.ts";
import type { AggregateStats, ProcessStats } from "../telemetry/stats.ts";

export type MachineFacts = Pick<Facts, "modelsFile" | "replaced">;

/** The addresses that a process listens on, as `http://host:port`. */
export interface Addresses {
  url: string;
  adminUrl: string;
}

/** What the parent can call in a child. */
export interface ChildMethods extends ProcessStats {
  /** Does nothing: the reply shows that the child is alive. */
  ping(): void;
  /** Drain, then exit. */
  stop(): void;
  /** A request that waited may be sent to a backend. */
  placeGranted(ticket: number, choice: Choice): void;
  /** A request that waited has to make room for one of another key. */
  placeDisplaced(ticket: number): void;
  /** @param shut those that take no requests now */
  backendsChanged(shut: string[]): void;
  /** The file that has it was changed. */
  catalogReplaced(catalog: Catalog): void;
}

/** What a child can call in its parent. */
export interface ParentMethods extends AggregateStats {
  listening(at: Addresses): void;
  /** The child accepts no new connections. */
  draining(): void;
  /** Enters the list of waiting requests that all processes share. @param ticket unique within the child */
  enterQueue(ticket: number, request: ListedRequest): Entry;
  leaveQueue(ticket: number, input?: ReportedInput): void;
  reportSign(ticket: number, sign: BackendSign): void;
  rankInLine(ticket: number): Rank | undefined;
  /** The one in use. If a file has it, only the parent reads that file. */
  catalog(): Catalog;
  listBackends(): BackendStatus[];
  setDraining(backend: string, isDraining: boolean): void;
  hasRestarted(backend: string): void;
  /** What there is once for the machine. */
  machine(): MachineFacts;
  /** @returns whether the child may write a refused request of a source to the request log */
  mayLogRefused(source: string): boolean;
  /** The child counts nothing after these. */
  finalMetrics(metrics: MetricsSnapshot): void;
}

/** How long the parent waits for a reply from a child, which may be busy. */
export const childTimeoutMs = 1000;
/** How long a child waits for a reply from the parent, which itself waits for all children. */
export const parentTimeoutMs = 3000;
