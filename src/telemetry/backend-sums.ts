import {
  backendCountNames,
  type BackendCounts,
  cacheCountNames,
  cacheCountsOf,
  noBackendCounts,
} from "../domain/backends.ts";
import { addHistogram, addValue, encodeHistogram, type Histogram } from "../domain/histogram.ts";
import { refusals, type RequestRecord } from "../domain/requests.ts";

/** What one backend was sent in one minute, and how it responded. */
export interface BackendSum extends BackendCounts {
  minute: number;
  backend: string;
  /** Milliseconds until the first byte of a stream. */
  firstByte: Histogram;
}

export type EncodedBackendSum = Omit<BackendSum, "firstByte"> & { firstByte: string };

export function createBackendSums() {
  const sums = new Map<string, BackendSum>();

  function sumOf(minute: number, backend: string): BackendSum {
    const id = `${minute} ${backend}`;
    const found = sums.get(id);
    if (found !== undefined) return found;
    const created = { minute, backend, ...noBackendCounts, firstByte: new Map() };
    sums.set(id, created);
    return created;
  }

  return {
    addRequest(record: RequestRecord, minute: number): void {
      const { backend, outcome, usage, streamed, firstByteMs, durationMs } = record;
      if (backend === undefined || refusals.has(outcome)) return;
      const sum = sumOf(minute, backend);
      sum.requestCount++;
      if (isBackendError(record)) sum.errorCount++;
      const counts = cacheCountsOf(record);
      for (const name of cacheCountNames) sum[name] += counts[name];
      sum.outputTokens += usage?.outputTokens ?? 0;
      if (!streamed || firstByteMs === undefined) return;
      addValue(sum.firstByte, firstByteMs);
      const flowMs = durationMs - firstByteMs;
      if (usage === undefined || usage.outputTokens === 0 || flowMs <= 0) return;
      sum.streamedTokens += usage.outputTokens;
      sum.streamedUs += Math.round(flowMs * 1000);
    },
    add(added: BackendSum): void {
      const sum = sumOf(added.minute, added.backend);
      for (const name of backendCountNames) sum[name] += added[name];
      addHistogram(sum.firstByte, added.firstByte);
    },
    list: (): BackendSum[] => [...sums.values()],
  };
}

/** A request that the backend refused, such as one of a model that it does not have, is not an error of the backend. */
export const isBackendError = ({ outcome, status }: Pick<RequestRecord, "outcome" | "status">): boolean =>
  outcome === "upstream_failed" || outcome === "timed_out" || (outcome === "completed" && status >= 500);

export const encodeBackendSum = (sum: BackendSum): EncodedBackendSum => ({
  ...sum,
  firstByte: encodeHistogram(sum.firstByte),
});
