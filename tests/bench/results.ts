import { existsSync, readFileSync } from "node:fs";
import type { PageCost } from "../browser/support/page-cost.ts";
import type { Figure, Run, Workload } from "./workloads.ts";

/** In the order of the page's columns. */
export const targetNames = [
  "direct",
  "nginx",
  "nginx, key map",
  "Tollgate",
  "Busbar",
  "GoModel",
  "Bun passthrough",
  "Bun transform",
] as const;

/** One figure of one workload: the median for each target that was measured. */
export interface Row {
  workload: string;
  figure: string;
  unit: Figure["unit"];
  /** Date, versions and machine of the measurement. */
  conditions: string;
  /** By target. */
  values: Readonly<Record<string, number>>;
}

/** What one process measured, or all of them together. */
export interface StorageFigures {
  eventsPerSecond: number;
  /** Time from recording a usage event to its commit, with many concurrent callers. */
  commitMs: { p50: number; p99: number };
  /** The same with one caller. */
  singleCommitMs: number;
  lookUpsPerSecond: number;
  singleLookUpMs: number;
}

export interface StorageResults {
  conditions: string;
  columns: readonly { engine: string; processes: number; figures: StorageFigures }[];
}

export interface ConsoleResults {
  conditions: string;
  /** Medians. */
  rows: readonly { view: string; keys: number; figures: PageCost }[];
}

/** What a request costs as something grows. */
export interface GrowthRow {
  name: string;
  sizes: readonly number[];
  /** CPU per request, for each size. */
  cpuUs: readonly number[];
  /** Of the largest to the smallest size, in the same round. */
  ratio: number;
}

/** What small requests wait beside something that a server does now and then. */
export interface BesideRow {
  name: string;
  /** Without it and beside it. */
  p99Ms: readonly [number, number];
  /** In the same round. */
  ratio: number;
  /** What the server's memory has more than that of the one without it. */
  extraMb: number;
}

export interface GrowthResults {
  conditions: string;
  rows: readonly GrowthRow[];
  beside?: readonly BesideRow[];
}

/** Everything that the bench measures, kept in a file so that a run of one workload leaves the others. */
export interface Results {
  rows: readonly Row[];
  storage: StorageResults | undefined;
  console?: ConsoleResults | undefined;
  growth?: GrowthResults | undefined;
}

export function readResults(file: string): Results {
  if (!existsSync(file)) return { rows: [], storage: undefined };
  const { rows, storage, console, growth } = JSON.parse(readFileSync(file, "utf8")) as Results;
  return { rows, storage, console, growth };
}

/** Replaces the rows of measured figures in place and appends new ones. */
export function mergeRows(earlier: readonly Row[], measured: readonly Row[]): Row[] {
  const nameOf = ({ workload, figure }: Row): string => JSON.stringify([workload, figure]);
  const rows = new Map(earlier.map((row) => [nameOf(row), row]));
  for (const row of measured) rows.set(nameOf(row), row);
  return [...rows.values()];
}

/** The same for what grows. The conditions are those of the last run. */
export function mergeGrowth(
  earlier: GrowthResults | undefined,
  measured: GrowthResults | undefined,
): GrowthResults | undefined {
  if (earlier === undefined || measured === undefined) return measured ?? earlier;
  const byName = <Named extends { name: string }>(...rows: Named[]): Named[] => [
    ...new Map(rows.map((row) => [row.name, row])).values(),
  ];
  const beside = byName(...(earlier.beside ?? []), ...(measured.beside ?? []));
  return {
    conditions: measured.conditions,
    rows: byName(...earlier.rows, ...measured.rows),
    ...(beside.length > 0 && { beside }),
  };
}

export function rowsOf(workload: Workload, runs: ReadonlyMap<string, readonly Run[]>, conditions: string): Row[] {
  return workload.figures.map((figure) => ({
    workload: workload.title,
    figure: figure.name,
    unit: figure.unit,
    conditions,
    values: Object.fromEntries([...runs].map(([target, own]) => [target, median(own.map(figure.of))])),
  }));
}

export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}
