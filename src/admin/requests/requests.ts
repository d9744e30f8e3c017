// The request log, what runs now, latencies, failures, groups, and what the rewriter would do with a request.
//
// It keeps true: a search is many short reads of the database instead of a long one, so that counts are written in
// between; it ends after a while, with a cursor. To follow the log is to ask for what came after an id. To explain a
// request sends nothing to a backend; the only thing that is changed here is a running request that is ended.
//
// Removed: a stream of the log as events, which polled the database for each open view and needed limits, pings, a way
// to resume and a table of what it left out; routes of their own for clients and for caches, which are groups now.

import type { AdminDeps } from "../http/deps.ts";
import type { Catalog } from "../../domain/models.ts";
import { memberFields } from "../../domain/request-fields.ts";
import type { LoggedRequest, RequestFilter, RequestPage, RequestPosition } from "../../store/requests/contract.ts";
import { timestampOf } from "../../time/seoul.ts";
import { ApiError } from "../http/errors.ts";
import { parseTimestamp } from "../http/query.ts";
import * as schema from "../http/schemas.ts";
import {
  type LogFilterQuery,
  type RequestBody,
  type RequestsBody,
  type RequestsQuery,
  timeMessage,
} from "./contract.ts";

/** A page with rare matches ends after this time, with a cursor. */
const searchMs = 30;

export const listRequests =
  ({ store, retention, catalog }: AdminDeps) =>
  async ({ query }: { query: RequestsQuery }): Promise<RequestsBody> => {
    const filter = logFilterOf(query, catalog());
    // First: what is written meanwhile is above it, and listed after it.
    const lastId = await store.requests.lastId();
    const list = (limit: number, before?: RequestPosition): Promise<RequestPage> =>
      store.requests.list(filter, limit, before, query.after);
    const { requests, next } = await search(list, query.limit, positionOf(query.cursor));
    return {
      requests: requests.map(requestBodyOf),
      next_cursor: next === undefined ? null : `${next.endedAt.toString(36)}.${next.id.toString(36)}`,
      scanned_to: next === undefined ? null : timestampOf(next.endedAt),
      more: next !== undefined,
      last_id: lastId,
      log: retention.requestLog,
    };
  };

async function search(
  list: (limit: number, before?: RequestPosition) => Promise<RequestPage>,
  limit: number,
  before: RequestPosition | undefined,
): Promise<RequestPage> {
  const endsAt = performance.now() + searchMs;
  const requests: LoggedRequest[] = [];
  for (let position = before; ;) {
    const page = await list(limit - requests.length, position);
    requests.push(...page.requests);
    position = page.next;
    const isDone = position === undefined || requests.length === limit || performance.now() > endsAt;
    if (isDone) return { requests, next: position };
  }
}

export function logFilterOf(query: LogFilterQuery, catalog: Catalog): RequestFilter {
  return {
    keyId: query.key_id,
    teamId: query.team_id,
    userId: query.user_id,
    model: query.model === undefined ? undefined : servedName(query.model, catalog),
    backend: query.backend,
    status: query.status === undefined ? undefined : statusRange(query.status),
    outcome: query.outcome,
    failed: query.failed === "true" ? true : undefined,
    withoutUsage: query.without_usage === "true" ? true : undefined,
    path: query.path,
    client: query.client,
    requestClass: query.class,
    address: query.address,
    conversation: query.conversation,
    requestId: query.request_id,
    traceId: query.trace_id,
    minDurationMs: query.min_duration_ms,
    since: parseTime(query, "since"),
    until: parseTime(query, "until"),
  };
}

/** Usage is counted, and linked here, under the name in the file of models; the log has what the backend was sent. */
const servedName = (name: string, { models }: Catalog): string =>
  models.some(({ servedAs }) => servedAs === name) ? name : (models.find((one) => one.name === name)?.servedAs ?? name);

/** @param text `404`, or `4xx` */
function statusRange(text: string): { from: number; to: number } {
  return { from: Number(text.replaceAll("x", "0")), to: Number(text.replaceAll("x", "9")) };
}

function parseTime(query: LogFilterQuery, name: "since" | "until"): number | undefined {
  return parseTimestamp(name, query[name], timeMessage(name));
}

function positionOf(cursor: string | undefined): RequestPosition | undefined {
  if (cursor === undefined) return undefined;
  const [endedAt = Number.NaN, id = Number.NaN] = cursor.split(".").map((part) => Number.parseInt(part, 36));
  if (Number.isSafeInteger(endedAt) && Number.isSafeInteger(id)) return { endedAt, id };
  throw new ApiError(400, schema.cursorMessage);
}

function requestBodyOf(request: LoggedRequest): RequestBody {
  const body: Record<string, unknown> = { id: request.id };
  for (const { field, name, kind } of memberFields) {
    const value = request[field];
    body[name] = kind === "time" && typeof value === "number" ? timestampOf(value) : value;
  }
  return body as RequestBody;
}
