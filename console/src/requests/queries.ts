import { type InfiniteData, useInfiniteQuery, type UseInfiniteQueryResult, useQuery } from "@tanstack/solid-query";
import { api, ApiError, forEachInTurn, responseBody } from "../client.ts";
import { plural } from "../lib/format.ts";
import { dayMs, seoulDay } from "../lib/seoul-time.ts";
import { serverNow } from "../lib/server-clock.ts";
import { keepPreviousData, type QueryResult, refetchSoonerAfterError, useChange } from "../queries.ts";
import type { RequestFilterQuery } from "./request-filters.ts";

/** How many requests one page of the log has. */
export const pageSize = 100;

export type RequestQuery = RequestFilterQuery & { since?: string; until?: string };

const fetchRequests = (query: RequestQuery & { after?: number }, cursor?: string, limit = pageSize) =>
  responseBody(api.requests.get({ query: { ...query, limit, ...(cursor === undefined ? {} : { cursor }) } }));

export type RequestPage = Awaited<ReturnType<typeof fetchRequests>>;
export type LoggedRequest = RequestPage["requests"][number];

export const getRequests: (query: RequestQuery, cursor?: string, limit?: number) => Promise<RequestPage> =
  fetchRequests;

/** The API's most for one page. */
const maxPageSize = 200;

/** The latest requests with an id above `after`. */
export const getRequestsAfter = (query: RequestQuery, after: number): Promise<RequestPage> =>
  fetchRequests({ ...query, after }, undefined, maxPageSize);

/** All requests of a query, newest first, a page at a time. Each page has what came before, and whether there is more. */
export async function* readAllRequests(
  query: RequestQuery,
): AsyncGenerator<{ requests: LoggedRequest[]; more: boolean }> {
  const requests: LoggedRequest[] = [];
  let cursor: string | undefined;
  do {
    const page = await getRequests(query, cursor, maxPageSize);
    requests.push(...page.requests);
    cursor = page.next_cursor ?? undefined;
    yield { requests, more: cursor !== undefined };
  } while (cursor !== undefined);
}

/** The log in pages; the live tail adds what is new. */
export const useRequestPages = (query: () => RequestQuery): UseInfiniteQueryResult<InfiniteData<RequestPage>> =>
  useInfiniteQuery(() => ({
    queryKey: ["requests", query()],
    queryFn: ({ pageParam }: { pageParam: string | undefined }) => getRequests(query(), pageParam),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last: RequestPage) => last.next_cursor ?? undefined,
    staleTime: 0,
    // The live tail reads what it has missed, and waits with it while the table is paused.
    refetchOnWindowFocus: false,
  }));

export interface OpenedRequest {
  requestId: string;
  /** Its `id`: clients choose the request id, and may repeat it. Undefined: the latest with the request id. */
  rowId: number | undefined;
}

export const isOpened = ({ requestId, rowId }: OpenedRequest, request: LoggedRequest): boolean =>
  request.request_id === requestId && (rowId === undefined || request.id === rowId);

/** One request by its ids, for a link to a request that the table does not hold. */
export const useRequestQuery = (opened: () => OpenedRequest | undefined): QueryResult<typeof findRequest> =>
  useQuery(() => ({
    enabled: opened() !== undefined,
    queryKey: ["request", opened()],
    queryFn: () => findRequest(opened()),
  }));

async function findRequest(opened: OpenedRequest | undefined): Promise<LoggedRequest | null> {
  if (opened === undefined) return null;
  const { requests } = await getRequests({ request_id: opened.requestId });
  return requests.find((request) => isOpened(opened, request)) ?? null;
}

const getRunning = () => responseBody(api["in-flight"].get());

export type RunningRequest = Awaited<ReturnType<typeof getRunning>>["requests"][number];

export const useRunningQuery = (): QueryResult<typeof getRunning> =>
  useQuery(() => ({ queryKey: ["in-flight"], queryFn: getRunning, refetchInterval: 2000, reconcile: "id" }));

/** Ends a running request. One that has ended meanwhile counts as a success. */
export const useEndRequest = () =>
  useChange(
    ({ id }: RunningRequest) =>
      responseBody(api["in-flight"]({ id }).delete()).then(
        () => "was ended",
        (error: unknown) => {
          if (hasEnded(error)) return "had already ended";
          throw error;
        },
      ),
    {
      done: (_, outcome) => `The request ${outcome}`,
      failed: () => "The request was not ended",
      refreshes: ["in-flight"],
    },
  );

const hasEnded = (error: unknown): boolean => error instanceof ApiError && error.status === 404;

export interface Stopped {
  requests: readonly RunningRequest[];
  /** Who is switched off with what they run; none: only the requests end. */
  offs: readonly { kind: "key" | "user"; id: number }[];
}

/** A user's responses end with it, a key's if that is said. */
const switchOff = ({ kind, id }: Stopped["offs"][number]): Promise<unknown> =>
  kind === "user"
    ? responseBody(api.users({ id }).patch({ is_active: false }))
    : responseBody(api.keys({ id }).patch({ is_active: false, end_running: true }));

/** Ends several requests. Those that have ended meanwhile count as a success. */
export const useStopRequests = () =>
  useChange(
    async ({ requests, offs }: Stopped): Promise<void> => {
      const end = ({ id }: RunningRequest): Promise<unknown> => responseBody(api["in-flight"]({ id }).delete());
      const calls =
        offs.length > 0 ? offs.map((off) => () => switchOff(off)) : requests.map((request) => () => end(request));
      const failures: unknown[] = [];
      await forEachInTurn(
        calls,
        (call) => call(),
        (_, error) => error === undefined || hasEnded(error) || failures.push(error),
      );
      if (failures.length > 0) throw failures[0];
    },
    {
      done: ({ requests, offs }) =>
        offs.length > 0
          ? `${plural(offs.length, `${offs[0]?.kind} is`, `${offs[0]?.kind}s are`)} off, and what ran was ended`
          : `${plural(requests.length, "request was", "requests were")} ended`,
      failed: () => "Not everything was stopped",
      refreshes: ["in-flight", "keys", "users"],
    },
  );

/** By what requests are grouped. */
export type Grouping = Parameters<typeof api.requests.groups.get>[0]["query"]["by"];

export interface GroupsQuery extends RequestQuery {
  by: Grouping;
}

/** The API adds up all groups, and lists so many. */
const maxGroups = 200;

const getGroups = async (query: GroupsQuery) => ({
  ...(await responseBody(api.requests.groups.get({ query: { ...query, limit: maxGroups } }))),
  by: query.by,
});
export type RequestGroups = Awaited<ReturnType<typeof getGroups>>;

/** What requests of the log have in common, and their sums. */
export const useRequestGroupsQuery = (query: () => GroupsQuery): QueryResult<typeof getGroups> =>
  useQuery(() => ({
    queryKey: ["requests", "groups", query()],
    queryFn: () => getGroups(query()),
    refetchInterval: refetchSoonerAfterError(60_000),
    placeholderData: keepPreviousData,
  }));

/** What charts of latency and failures show. */
export const chartHours = 24;
export const chartBucketMinutes = 15;
const inChart = { hours: chartHours, bucket_minutes: chartBucketMinutes };

const getLatency = async () => ({
  ...(await responseBody(api.latency.get({ query: { ...inChart, by: "all" } }))),
  fetchedAt: serverNow(),
});
export type Latency = Awaited<ReturnType<typeof getLatency>>;

const getFailures = async (keyId: number | undefined) => ({
  ...(await responseBody(api.failures.get({ query: { ...inChart, ...ofKey(keyId) } }))),
  fetchedAt: serverNow(),
});
export type Failures = Awaited<ReturnType<typeof getFailures>>;

const getLastRequests = (query: { key_id?: number; limit: number }) => responseBody(api.requests.get({ query }));

export const useLatencyQuery = (): QueryResult<typeof getLatency> =>
  useQuery(() => ({ queryKey: ["latency"], queryFn: getLatency, refetchInterval: 30_000 }));

export const useFailuresQuery = (keyId: () => number | undefined): QueryResult<typeof getFailures> =>
  useQuery(() => ({
    queryKey: ["failures", keyId()],
    queryFn: () => getFailures(keyId()),
    refetchInterval: 30_000,
    placeholderData: keepPreviousData,
  }));

const shownFailures = 6;

/** Goes on where the server's search ends for its time: a page may be empty although there are failures before it. */
async function getLastFailures(keyId: number | undefined, signal: AbortSignal): Promise<LoggedRequest[]> {
  const requests: LoggedRequest[] = [];
  let cursor: string | undefined;
  do {
    signal.throwIfAborted();
    const page = await getRequests({ failed: "true", ...ofKey(keyId) }, cursor, shownFailures - requests.length);
    requests.push(...page.requests);
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined && requests.length < shownFailures);
  return requests;
}

/** The last failures of all keys or of one. */
export const useLastFailuresQuery = (keyId: () => number | undefined): QueryResult<typeof getLastFailures> =>
  useQuery(() => ({
    queryKey: ["requests", "failed", keyId()],
    queryFn: ({ signal }) => getLastFailures(keyId(), signal),
    refetchInterval: 15_000,
  }));

/** The last requests of a key, for its latency. */
export const useKeyRequestsQuery = (keyId: () => number): QueryResult<typeof getLastRequests> =>
  useQuery(() => ({
    queryKey: ["requests", "of-key", keyId()],
    queryFn: () => getLastRequests({ key_id: keyId(), limit: 100 }),
    refetchInterval: 30_000,
  }));

const ofKey = (keyId: number | undefined): { key_id?: number } => (keyId === undefined ? {} : { key_id: keyId });

/** The models of a week, most used first. */
async function getModelNames(): Promise<string[]> {
  const from = seoulDay(serverNow() - 6 * dayMs);
  const { rows } = await responseBody(api.usage.costs.get({ query: { from, by: "model", limit: 2000 } }));
  const mostFirst = rows.toSorted((a, b) => b.input_tokens + b.output_tokens - a.input_tokens - a.output_tokens);
  return mostFirst.flatMap(({ model }) => (model === null || model === "" ? [] : [model]));
}

export const useModelNamesQuery = (): QueryResult<typeof getModelNames> =>
  useQuery(() => ({ queryKey: ["usage", "models", "names"], queryFn: getModelNames }));
