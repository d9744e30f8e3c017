import type { RequestObserver } from "../domain/requests.ts";
import type { Log } from "../log/log.ts";

/** Logs one line for each request when it ends. */
export function createRequestLog(log: Log): RequestObserver {
  return {
    finished: (record) =>
      log.info("Request ended", {
        requestId: record.requestId,
        client: record.clientAddress,
        method: record.method,
        path: record.path,
        status: record.status,
        outcome: record.outcome,
        keyId: record.keyId,
        modelAsked: record.modelAsked,
        modelSent: record.modelSent,
        code: record.code,
        cause: record.cause,
        receivedBytes: record.cause === undefined ? undefined : record.receivedBytes,
        streamed: record.streamed,
        upstreamMs: toTenths(record.upstreamMs),
        firstByteMs: toTenths(record.firstByteMs),
        durationMs: toTenths(record.durationMs),
        inputTokens: record.usage?.inputTokens,
        outputTokens: record.usage?.outputTokens,
      }),
  };
}

const toTenths = (ms: number | undefined): number | undefined =>
  ms === undefined ? undefined : Math.round(ms * 10) / 10;
