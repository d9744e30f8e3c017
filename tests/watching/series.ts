import { createMetrics } from "../../src/telemetry/metrics.ts";
import { steadyValues } from "../support/steady-values.ts";

/** The names of all series in `/metrics`, those that Prometheus makes of a histogram included. */
export async function listSeries(): Promise<ReadonlySet<string>> {
  const metrics = createMetrics({
    version: "1",
    commit: "c",
    perKey: false,
    waiting: () => ({ requests: 0, keys: 0, sinceMs: 0 }),
    refusedRequests: () => 0,
    problems: () => [],
    areLimitsDegraded: () => false,
    inFlight: () => 0,
    slow: steadyValues,
    queue: { places: 1, depth: () => ({ waiting: 0, running: 0 }) },
    backends: async () => [],
    droppedRequests: () => 0,
  });
  const text = await metrics.text();
  metrics.close();
  const types = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)];
  return new Set(types.flatMap(([, name = "", type]) => (type === "histogram" ? [`${name}_bucket`] : [name])));
}

/** The series that a PromQL expression reads. */
export const seriesIn = (expression: string): string[] => expression.match(/\b(?:tollgate|process)_\w+/g) ?? [];
