import type { KeyId } from "../domain/keys.ts";
import type { Log } from "../log/log.ts";
import { createBag } from "../runtime/bag.ts";
import { batchPerTick } from "../time/per-tick.ts";
import {
  type RequestObserver,
  type RequestRecord,
  type RunningHandle,
  type RunningRequest,
  refusals,
} from "../domain/requests.ts";
import type { WallClock } from "../time/clock.ts";
import { minuteOf } from "../time/seoul.ts";
import { clientRules } from "../domain/models.ts";

/** A running request and the id by which it can be ended. */
export interface IdentifiedRequest extends RunningRequest {
  id: string;
}

/** Knows the requests in flight, for the metrics, the console and the supervisor. */
export type InFlight = ReturnType<typeof createInFlight>;

/** One more than the API lists, so that it knows that there are more. */
const maxListed = 1001;

export function createInFlight() {
  // Random: in containers every process may have the same id, and an id must not end another process's request.
  const prefix = crypto.randomUUID().slice(0, 8);
  const idOf = (number: number): string => `${prefix}-${number}`;
  let lastNumber = 0;
  const running = createBag<{ number: number; request: RunningHandle }>();
  let becameIdle = Promise.withResolvers<void>();
  return {
    /** @returns to be called when it has ended */
    add(request: RunningHandle): () => void {
      lastNumber += 1;
      const remove = running.add({ number: lastNumber, request });
      return () => {
        remove();
        if (running.size() > 0) return;
        becameIdle.resolve();
        becameIdle = Promise.withResolvers();
      };
    },
    count: running.size,
    /** Oldest first, at most `maxListed`. */
    list: (): IdentifiedRequest[] =>
      running
        .list()
        .toSorted((a, b) => a.number - b.number)
        .slice(0, maxListed)
        .map(({ number, request }) => Object.assign(request.describe(), { id: idOf(number) })),
    /** Ends a request. @returns whether it was in flight here */
    end(id: string): boolean {
      const found = running.list().find(({ number }) => idOf(number) === id);
      found?.request.end();
      return found !== undefined;
    },
    /** Resolves when there are none. */
    idle: async (): Promise<void> => (running.size() === 0 ? undefined : becameIdle.promise),
  };
}

/**
 * Reports all requests that ended in one tick together at its end. This halves the cost, and no response waits for the
 * observers.
 * @param ofCauses told only of requests that failed with a cause
 */
export function observePerTick(
  observers: readonly RequestObserver[],
  ofCauses: readonly RequestObserver[] = [],
): RequestObserver {
  const ended = batchPerTick<RequestRecord>((records) => {
    for (const record of records) {
      for (const observer of observers) observer.finished(record);
      if (record.cause !== undefined) for (const observer of ofCauses) observer.finished(record);
    }
  });
  return { finished: ended.add };
}

/** Causes for which no connection was made: other failures may be those of single requests. */
const unconnected = /^(?:ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|ENOENT|ENOTFOUND|connect_timeout)$/;

/** Refusals of so long are known. */
const refusedMinutes = 5;
const queueCodes: ReadonlySet<string | undefined> = new Set(["queue_full", "queue_timeout"]);
/** Takes the place of a key's id. */
const byQueue = 0;

/**
 * Knows since when requests have got no response from the upstream, and logs that it goes and comes; what the queue refused,
 * and for which keys the users' tokens were.
 * @param isLogged whether nothing else does, as where there is no choice of backends
 */
export function createUpstreamFailures(clock: WallClock, log: Log, isLogged: () => boolean) {
  let since: number | undefined;
  let outAt: number | undefined;
  /** By minute: whose, and how many. */
  const refused = new Map<number, Map<KeyId, number>>();

  function count(whose: KeyId): void {
    const counts = refused.getOrInsertComputed(minuteOf(clock()), () => new Map<KeyId, number>());
    counts.set(whose, (counts.get(whose) ?? 0) + 1);
  }

  return {
    finished({ upstreamMs, cause, code, outcome, backend, durationMs, keyId }: RequestRecord): void {
      if (queueCodes.has(code)) count(byQueue);
      else if (code === "invalid_user_token" && keyId !== undefined) count(keyId);
      if (upstreamMs !== undefined) {
        since = undefined;
        // What it was sent before may still end.
        if (outAt === undefined || clock() - durationMs < outAt) return;
        outAt = undefined;
        log.info("Backend back", { backend });
      } else if (cause !== undefined && outcome !== "refused") {
        since ??= clock();
        if (outAt !== undefined || !unconnected.test(cause) || !isLogged()) return;
        outAt = clock();
        log.warn("Backend out", { backend, cause });
      }
    },
    /** Epoch milliseconds; undefined if the last request got one. */
    since: (): number | undefined => since,
    /** How many requests were refused in the last minutes: by the queue, and for the users' tokens of keys. */
    refused(): { inQueue: number; ofUsers: ReadonlyMap<KeyId, number> } {
      for (const minute of refused.keys()) if (minute <= minuteOf(clock()) - refusedMinutes) refused.delete(minute);
      const sums = new Map<KeyId, number>();
      for (const counts of refused.values()) for (const [id, n] of counts) sums.set(id, (sums.get(id) ?? 0) + n);
      const inQueue = sums.get(byQueue) ?? 0;
      sums.delete(byQueue);
      return { inQueue, ofUsers: sums };
    },
  };
}

/** Logs one line for each request when it ends. */
export function createRequestLog(log: Log): RequestObserver {
  return {
    finished: (record) =>
      log.info("Request ended", {
        requestId: record.requestId,
        traceId: record.traceId,
        address: record.clientAddress,
        method: record.method,
        path: record.path,
        status: record.status,
        outcome: record.outcome,
        keyId: record.keyId,
        priority: record.priority,
        modelAsked: record.modelAsked,
        modelSent: record.modelSent,
        backend: record.reason === undefined ? undefined : record.backend,
        reason: record.reason,
        code: record.code,
        cause: record.cause,
        error: record.message,
        receivedBytes: record.cause === undefined ? undefined : record.receivedBytes,
        streamed: record.streamed,
        upstreamMs: toTenths(record.upstreamMs),
        firstByteMs: toTenths(record.firstByteMs),
        durationMs: toTenths(record.durationMs),
        inputTokens: record.usage?.inputTokens,
        outputTokens: record.usage?.outputTokens,
        estimatedTokens: record.estimatedTokens === 0 ? undefined : record.estimatedTokens,
        sends: record.sends,
        clientRules: record.changes && (record.changes.kinds.filter(isClientRule).join(", ") || undefined),
      }),
  };
}

const clientRuleNames: ReadonlySet<string> = new Set(clientRules);

const isClientRule = (kind: string): boolean => clientRuleNames.has(kind);

const toTenths = (ms: number | undefined): number | undefined =>
  ms === undefined ? undefined : Math.round(ms * 10) / 10;

/** How many requests that anyone can send are logged in a minute for each error code and network. */
const maxRefused = 60;
/** Bounds the memory of a flood from many networks; what comes from further ones is not logged in that minute. */
const maxSources = 10_000;
const windowMs = 60_000;

/** Lets a number of requests of each source pass in a minute. */
export function createRefusalLimit(clock: WallClock): (source: string) => boolean {
  const logged = new Map<string, number>();
  let windowStart = 0;
  return (source) => {
    const now = clock();
    if (now - windowStart >= windowMs || now < windowStart) {
      logged.clear();
      windowStart = now;
    }
    const count = logged.get(source) ?? 0;
    if (count === maxRefused || (count === 0 && logged.size === maxSources)) return false;
    logged.set(source, count + 1);
    return true;
  };
}

/** Logs the requests that do not count in the database. Those that count are written by the ledger, with their counts. */
export function createStoredRequestLog(options: {
  /** Writes a request to the log in the database. */
  logRequest: (request: RequestRecord) => void;
  /** Corrects the row of a request that counts. */
  amendRequest: (request: RequestRecord) => void;
  /** The network of an address, which has one owner. */
  networkOf: (address: string) => string;
  /** Asks whether all processes that share the port have logged fewer than the limit; undefined if there is one process. */
  mayLogShared?: ((source: string) => Promise<boolean>) | undefined;
  /** Called for each request that is not logged because too many like it were. */
  onOmitted: () => void;
  clock: WallClock;
}): RequestObserver {
  const { logRequest, amendRequest, networkOf, mayLogShared, onOmitted } = options;
  const mayLogHere = createRefusalLimit(options.clock);

  function logRefused(record: RequestRecord): void {
    const source = `${record.code ?? ""} ${networkOf(record.clientAddress)}`;
    const log = (mayLog: boolean): void => (mayLog ? logRequest(record) : onOmitted());
    // A flood that this process would not log by itself costs no messages.
    if (!mayLogHere(source)) log(false);
    else if (mayLogShared === undefined) log(true);
    else void mayLogShared(source).then(log);
  }

  return {
    finished(record) {
      if (record.writtenMs !== undefined) {
        if (record.writtenMs !== record.durationMs) amendRequest(record);
        return;
      }
      if (refusals.has(record.outcome) || record.keyId === undefined) logRefused(record);
      else logRequest(record);
    },
  };
}
