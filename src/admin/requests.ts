import type { LoggedRequest, RequestFilter, RequestLogLimits, RequestPosition } from "../store/request-log-store.ts";
import type { Store } from "../store/store.ts";
import { isDay, timestampOf } from "../time/seoul.ts";
import { ApiError } from "./errors.ts";
import type { RequestBody, RequestFilterQuery, RequestsBody, RequestsQuery } from "./request-schemas.ts";

/** A page with rare matches ends after this time, with a cursor. */
const searchMs = 30;

export interface RequestsDeps {
  store: Pick<Store, "requests">;
  requestLog: RequestLogLimits;
}

export const listRequests =
  ({ store, requestLog }: RequestsDeps) =>
  async ({ query }: { query: RequestsQuery }): Promise<RequestsBody> => {
    const filter = { ...filterOf(query), since: timeOf(query, "since"), until: timeOf(query, "until") };
    const { requests, next } = await search(store.requests, filter, query.limit, positionOf(query.cursor));
    return {
      requests: requests.map(requestBodyOf),
      next_cursor: next === undefined ? null : `${next.endedAt.toString(36)}.${next.id.toString(36)}`,
      scanned_to: next === undefined ? null : timestampOf(next.endedAt),
      log: requestLog,
    };
  };

/** Many short reads of the database instead of a long one, so that counts are written in between. */
async function search(
  log: Store["requests"],
  filter: RequestFilter,
  limit: number,
  before: RequestPosition | undefined,
): Promise<{ requests: LoggedRequest[]; next: RequestPosition | undefined }> {
  const endsAt = performance.now() + searchMs;
  const requests: LoggedRequest[] = [];
  for (let position = before; ;) {
    const page = await log.list(filter, limit - requests.length, position);
    requests.push(...page.requests);
    position = page.next;
    const isDone = position === undefined || requests.length === limit || performance.now() > endsAt;
    if (isDone) return { requests, next: position };
  }
}

export function filterOf(query: RequestFilterQuery): RequestFilter {
  return {
    keyId: query.key_id,
    model: query.model,
    status: query.status === undefined ? undefined : statusRange(query.status),
    outcome: query.outcome,
    failed: query.failed === "true" ? true : undefined,
    path: query.path,
    address: query.address,
    requestId: query.request_id,
    minDurationMs: query.min_duration_ms,
  };
}

/** @param text `404`, or `4xx` */
function statusRange(text: string): { from: number; to: number } {
  return { from: Number(text.replaceAll("x", "0")), to: Number(text.replaceAll("x", "9")) };
}

function timeOf(query: RequestsQuery, name: "since" | "until"): number | undefined {
  const text = query[name];
  if (text === undefined) return undefined;
  const time = isDay(text.slice(0, "2026-05-01".length)) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(time)) throw new ApiError(400, `${name} must be a time such as 2026-05-01T12:00:00Z`);
  return time;
}

function positionOf(cursor: string | undefined): RequestPosition | undefined {
  if (cursor === undefined) return undefined;
  const [endedAt = Number.NaN, id = Number.NaN] = cursor.split(".").map((part) => Number.parseInt(part, 36));
  if (Number.isSafeInteger(endedAt) && Number.isSafeInteger(id)) return { endedAt, id };
  throw new ApiError(400, "cursor must be one that this endpoint returned");
}

export const requestBodyOf = (request: LoggedRequest): RequestBody => ({
  id: request.id,
  ended_at: timestampOf(request.endedAt),
  request_id: request.requestId,
  key_id: request.keyId,
  key_name: request.keyName,
  address: request.address,
  client: request.client,
  method: request.method,
  path: request.path,
  model_asked: request.modelAsked,
  model_sent: request.modelSent,
  backend: request.backend,
  status: request.status,
  outcome: request.outcome,
  code: request.code,
  cause: request.cause,
  streamed: request.streamed,
  input_tokens: request.inputTokens,
  output_tokens: request.outputTokens,
  cached_input_tokens: request.cachedInputTokens,
  reasoning_tokens: request.reasoningTokens,
  queue_ms: request.queueMs,
  upstream_ms: request.upstreamMs,
  first_byte_ms: request.firstByteMs,
  duration_ms: request.durationMs,
  response_bytes: request.responseBytes,
  changes: request.changes,
  max_tokens_from: request.maxTokensFrom,
  max_tokens_to: request.maxTokensTo,
});
