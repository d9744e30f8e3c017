import {
  addHistogram,
  addValue,
  encodeHistogram,
  type Histogram,
  type LatencyHistogram,
  latencyHistograms,
} from "../domain/histogram.ts";
import { mapCounters } from "../domain/usage.ts";
import type { Log } from "../log/log.ts";
import type { WallClock } from "../time/clock.ts";
import { minuteOf } from "../time/seoul.ts";
import { type OutcomeSum, refusals, type RequestRecord } from "../domain/requests.ts";
import { lacksUsage } from "./request-metrics.ts";
import {
  backendCountNames,
  type BackendCounts,
  cacheCountNames,
  cacheCountsOf,
  noBackendCounts,
} from "../domain/backends.ts";

/** The latencies of one model in one minute. */
type LatencySum = { minute: number; model: string; requestCount: number } & Record<LatencyHistogram, Histogram>;

export interface Traffic {
  latencies: LatencySum[];
  outcomes: OutcomeSum[];
  backends: BackendSum[];
}

/** The same with histograms as text. */
export type EncodedTraffic = { [Name in keyof Traffic]: Encoded<Traffic[Name][number]>[] };

type Encoded<Sum> = { [Name in keyof Sum]: Sum[Name] extends Histogram ? string : Sum[Name] };

const writeMs = 5000;
/** Bound the memory: above these numbers, what clients choose or strangers cause is summed under one name. */
const maxModels = 500;
const maxOutcomes = 10_000;
const hourMs = 3_600_000;

/**
 * Sums latencies and outcomes, and writes them every few seconds while there are any. A crash loses the last seconds: these
 * are statistics and not counts.
 */
export function createTrafficRecorder(options: {
  write: (traffic: EncodedTraffic) => Promise<void>;
  clock: WallClock;
  log: Log;
}) {
  const { write, clock, log } = options;
  let sums = createSums();
  let timer: Timer | undefined;
  let writing = Promise.resolve();
  let unlogged = 0;
  let loggedAt = -Infinity;

  async function writeOut(): Promise<void> {
    timer = undefined;
    const written = sums;
    sums = createSums();
    try {
      await write(encode(written.traffic()));
    } catch (error) {
      log.debug("Traffic statistics not written; they wait in memory", { error: String(error) });
      written.add(sums.traffic());
      sums = written;
      if (timer === undefined) schedule();
    }
  }

  function schedule(): void {
    timer = setTimeout(() => void (writing = writeOut()), writeMs);
  }

  function warnOfMissingUsage(record: RequestRecord, now: number): void {
    unlogged++;
    if (now - loggedAt < hourMs) return;
    log.warn("Responses without token counts; set PROXY_FORCE_STREAM_USAGE to have streams report them", {
      count: unlogged,
      path: record.path,
      model: record.model,
      keyId: record.keyId,
      streamed: record.streamed,
    });
    unlogged = 0;
    loggedAt = now;
  }

  return {
    finished(record: RequestRecord): void {
      const now = clock();
      sums.addRequest(record, now);
      if (lacksUsage(record)) warnOfMissingUsage(record, now);
      if (timer === undefined) schedule();
    },
    /** Writes what is left. */
    async close(): Promise<void> {
      await writing;
      const isPending = timer !== undefined;
      clearTimeout(timer);
      if (isPending) await writeOut();
      clearTimeout(timer);
    },
  };
}

const encode = ({ latencies, outcomes, backends }: Traffic): EncodedTraffic => ({
  outcomes,
  latencies: latencies.map(withText),
  backends: backends.map(withText),
});

const withText = <Sum extends object>(sum: Sum): Encoded<Sum> =>
  Object.fromEntries(
    Object.entries(sum).map(([name, value]) => [name, value instanceof Map ? encodeHistogram(value) : value]),
  ) as Encoded<Sum>;

/** How a failure is named. */
function failureCode({ outcome, status, code, cause }: RequestRecord): string {
  return outcome === "completed" ? `status_${status}` : (code ?? cause ?? outcome);
}

function createSums() {
  const latencies = new Map<string, LatencySum>();
  const outcomes = new Map<string, OutcomeSum>();
  const backends = createBackendSums();

  function latencyOf(minute: number, model: string): LatencySum {
    const name = latencies.size >= maxModels ? "other" : model;
    const id = `${minute} ${name}`;
    return latencies.getOrInsertComputed(id, () => {
      const histograms = mapCounters(latencyHistograms, (): Histogram => new Map());
      return { minute, model: name, requestCount: 0, ...histograms };
    });
  }

  function addOutcome(added: OutcomeSum): void {
    const keyId = outcomes.size >= maxOutcomes ? 0 : added.keyId;
    const id = `${added.minute} ${keyId} ${added.outcome} ${added.code}`;
    const found = outcomes.get(id);
    if (found === undefined) outcomes.set(id, { ...added, keyId });
    else {
      found.count += added.count;
      found.lastAt = Math.max(found.lastAt, added.lastAt);
    }
  }

  return {
    addRequest(record: RequestRecord, now: number): void {
      const minute = minuteOf(now);
      backends.addRequest(record, minute);
      const { keyId = 0, outcome } = record;
      const isSuccess = outcome === "completed" && record.status < 400;
      addOutcome({ minute, keyId, outcome, code: isSuccess ? "" : failureCode(record), count: 1, lastAt: now });
      if (!refusals.has(outcome)) addLatency(latencyOf(minute, record.model ?? ""), record);
    },
    /** Adds what could not be written, or came meanwhile. */
    add(traffic: Traffic): void {
      for (const one of traffic.latencies) {
        const sum = latencyOf(one.minute, one.model);
        sum.requestCount += one.requestCount;
        for (const name of latencyHistograms) addHistogram(sum[name], one[name]);
      }
      for (const one of traffic.outcomes) addOutcome(one);
      for (const one of traffic.backends) backends.add(one);
    },
    traffic: (): Traffic => ({
      latencies: [...latencies.values()],
      outcomes: [...outcomes.values()],
      backends: backends.list(),
    }),
  };
}

function addLatency(sum: LatencySum, record: RequestRecord): void {
  const { durationMs, firstByteMs, streamed, usage, queueMs, waitedFor } = record;
  sum.requestCount++;
  addValue(sum.duration, durationMs);
  if (waitedFor !== undefined && queueMs !== undefined) addValue(sum.queueWait, queueMs);
  if (!streamed || firstByteMs === undefined) return;
  addValue(sum.firstByte, firstByteMs);
  const flowMs = durationMs - firstByteMs;
  const tokens = usage?.outputTokens ?? 0;
  if (tokens > 0 && flowMs > 0) addValue(sum.tokensPerSecond, (tokens / flowMs) * 1000);
}

/** What one backend was sent in one minute, and how it responded. */
interface BackendSum extends BackendCounts {
  minute: number;
  backend: string;
  /** Milliseconds until the first byte of a stream. */
  firstByte: Histogram;
}

function createBackendSums() {
  const sums = new Map<string, BackendSum>();

  function sumOf(minute: number, backend: string): BackendSum {
    const id = `${minute} ${backend}`;
    return sums.getOrInsertComputed(id, () => ({ minute, backend, ...noBackendCounts, firstByte: new Map() }));
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
const isBackendError = ({ outcome, status }: Pick<RequestRecord, "outcome" | "status">): boolean =>
  outcome === "upstream_failed" || outcome === "timed_out" || (outcome === "completed" && status >= 500);
