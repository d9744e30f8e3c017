import { Histogram, type LatencyHistogram, latencyHistograms } from "../domain/histogram.ts";
import type { Log } from "../log/log.ts";
import type { WallClock } from "../time/clock.ts";
import { minuteOf } from "../time/seoul.ts";
import { lacksUsage, type OutcomeSum, refusals, type RequestRecord } from "../domain/requests.ts";
import {
  backendCountNames,
  type BackendCounts,
  cacheCountNames,
  cacheCountsOf,
  noBackendCounts,
} from "../domain/backends.ts";

/** The latencies of one model in one minute. */
type LatencySum = { minute: number; model: string; requestCount: number } & Record<LatencyHistogram, Histogram>;

/** What one backend was sent in one minute, and how it responded. */
interface BackendSum extends BackendCounts {
  minute: number;
  backend: string;
  /** Milliseconds until the first byte of a stream. */
  firstByte: Histogram;
}

interface Traffic {
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
    Object.entries(sum).map(([name, value]) => [name, value instanceof Histogram ? value.toText() : value]),
  ) as Encoded<Sum>;

function createSums() {
  const latencies = new Map<string, LatencySum>();
  const outcomes = new Map<string, OutcomeSum>();
  const backends = new Map<string, BackendSum>();

  function latencyOf(minute: number, asked: string): LatencySum {
    const model = latencies.size >= maxModels ? "other" : asked;
    const id = `${minute} ${model}`;
    let sum = latencies.get(id);
    if (sum === undefined) {
      const [firstByte, duration] = [new Histogram(), new Histogram()];
      const [tokensPerSecond, queueWait] = [new Histogram(), new Histogram()];
      sum = { minute, model, requestCount: 0, firstByte, duration, tokensPerSecond, queueWait };
      latencies.set(id, sum);
    }
    return sum;
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

  function backendOf(minute: number, backend: string): BackendSum {
    const id = `${minute} ${backend}`;
    let sum = backends.get(id);
    if (sum === undefined) {
      sum = { minute, backend, ...noBackendCounts, firstByte: new Histogram() };
      backends.set(id, sum);
    }
    return sum;
  }

  return {
    addRequest(record: RequestRecord, now: number): void {
      const { keyId = 0, outcome, status, backend, durationMs, usage, queueMs, waitedFor } = record;
      const minute = minuteOf(now);
      const isCompleted = outcome === "completed";
      const failure = record.code ?? record.cause ?? outcome;
      const code = !isCompleted ? failure : status < 400 ? "" : `status_${status}`;
      addOutcome({ minute, keyId, outcome, code, count: 1, lastAt: now });
      if (refusals.has(outcome)) return;
      const latency = latencyOf(minute, record.model ?? "");
      latency.requestCount++;
      latency.duration.add(durationMs);
      if (waitedFor !== undefined && queueMs !== undefined) latency.queueWait.add(queueMs);
      const ofBackend = backend === undefined ? undefined : backendOf(minute, backend);
      const tokens = usage?.outputTokens ?? 0;
      if (ofBackend !== undefined) {
        ofBackend.requestCount++;
        // One that the backend refused, such as of a model that it does not have, is no error of the backend.
        const isError = outcome === "upstream_failed" || outcome === "timed_out" || (isCompleted && status >= 500);
        if (isError) ofBackend.errorCount++;
        const counts = cacheCountsOf(record);
        for (const name of cacheCountNames) ofBackend[name] += counts[name];
        ofBackend.outputTokens += tokens;
      }
      const firstByteMs = record.streamed ? record.firstByteMs : undefined;
      if (firstByteMs === undefined) return;
      latency.firstByte.add(firstByteMs);
      if (ofBackend !== undefined) ofBackend.firstByte.add(firstByteMs);
      const flowMs = durationMs - firstByteMs;
      if (tokens === 0 || flowMs <= 0) return;
      latency.tokensPerSecond.add((tokens / flowMs) * 1000);
      if (ofBackend === undefined) return;
      ofBackend.streamedTokens += tokens;
      ofBackend.streamedUs += Math.round(flowMs * 1000);
    },
    /** Adds what could not be written, or came meanwhile. */
    add(traffic: Traffic): void {
      for (const one of traffic.latencies) {
        const sum = latencyOf(one.minute, one.model);
        sum.requestCount += one.requestCount;
        for (const name of latencyHistograms) sum[name].addAll(one[name]);
      }
      for (const one of traffic.outcomes) addOutcome(one);
      for (const one of traffic.backends) {
        const sum = backendOf(one.minute, one.backend);
        for (const name of backendCountNames) sum[name] += one[name];
        sum.firstByte.addAll(one.firstByte);
      }
    },
    traffic: (): Traffic => ({
      latencies: [...latencies.values()],
      outcomes: [...outcomes.values()],
      backends: [...backends.values()],
    }),
  };
}
