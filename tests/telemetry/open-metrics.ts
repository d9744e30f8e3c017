import { createMetrics, type Metrics, type ObservedQueue } from "../../src/telemetry/metrics.ts";
import { steadyValues } from "../support/steady-values.ts";
import type { BackendStates } from "../../src/domain/backends.ts";
import type { RequestRecord } from "../../src/domain/requests.ts";

/** The metrics of a server on which nothing has happened. */
export function openMetrics({
  perKey = false,
  waiting = { requests: 0, keys: 0, sinceMs: 0 },
  inFlight = (): number => 0,
  slow = steadyValues,
  backends = undefined as BackendStates["list"] | undefined,
  queue = undefined as ObservedQueue | undefined,
} = {}): Metrics & Disposable {
  const options = {
    version: "1.2.3",
    commit: "abc1234",
    perKey,
    waiting: () => waiting,
    refusedRequests: () => 5,
    problems: () => [],
    areLimitsDegraded: () => false,
    inFlight,
    slow,
    backends,
    ...(queue && { queue }),
    droppedRequests: () => 0,
  };
  const metrics = createMetrics(options);
  return { ...metrics, [Symbol.dispose]: metrics.close };
}

/** The value of a series in the text; undefined if it has none. */
export function valueOf(text: string, series: string): number | undefined {
  const line = text.split("\n").find((each) => each.startsWith(`${series} `));
  return line === undefined ? undefined : Number(line.slice(series.length + 1));
}

export const seriesOf = (text: string, name: string) => text.split("\n").filter((line) => line.startsWith(`${name}{`));

export function finish(metrics: Metrics, ...records: RequestRecord[]): void {
  for (const each of records) metrics.finished(each);
}
