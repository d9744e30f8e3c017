import type { Log } from "../log/log.ts";
import { clientRules } from "../domain/models.ts";
import { refusals, type RequestObserver, type RequestRecord } from "../domain/requests.ts";
import type { WallClock } from "../time/clock.ts";

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
        clientRules: clientRulesOf(record),
      }),
  };
}

const clientRuleNames: ReadonlySet<string> = new Set(clientRules);

/** Those that changed the request. */
function clientRulesOf({ changes }: RequestRecord): string | undefined {
  const rules: string[] = [];
  for (const kind of changes?.kinds ?? []) if (clientRuleNames.has(kind)) rules.push(kind);
  return rules.length === 0 ? undefined : rules.join(", ");
}

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
export function createStoredRequestLog({
  logRequest,
  amendRequest,
  networkOf,
  mayLogShared,
  onOmitted,
  clock,
}: {
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
  const mayLogHere = createRefusalLimit(clock);

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
