import {
  type InfiniteData,
  useInfiniteQuery,
  type UseInfiniteQueryResult,
  useMutation,
  type UseMutationResult,
  useQuery,
  useQueryClient,
} from "@tanstack/solid-query";
import { api, ApiError, responseBody } from "../client.ts";
import type { QueryResult } from "../queries.ts";
import type { RequestFilterQuery } from "./request-filters.ts";
import { showToast } from "../lib/toasts.ts";

/** Of one page of the log. */
export const pageSize = 100;

export type RequestQuery = RequestFilterQuery & { since?: string; until?: string };

const fetchRequests = (query: RequestQuery, cursor?: string) =>
  responseBody(api.requests.get({ query: { ...query, limit: pageSize, ...(cursor === undefined ? {} : { cursor }) } }));

export type RequestPage = Awaited<ReturnType<typeof fetchRequests>>;
export type LoggedRequest = RequestPage["requests"][number];

export const getRequests: (query: RequestQuery, cursor?: string) => Promise<RequestPage> = fetchRequests;

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
export function useEndRequest(): UseMutationResult<unknown, Error, RunningRequest> {
  const queries = useQueryClient();
  return useMutation(() => ({
    mutationFn: (request: RunningRequest) => responseBody(api["in-flight"]({ id: request.id }).delete()),
    onSuccess: () => showToast("The request was ended"),
    onError: (error: Error) => {
      if (error instanceof ApiError && error.status === 404) showToast("The request had already ended");
      else showToast(`The request was not ended: ${error.message}`, "error");
    },
    onSettled: () => queries.invalidateQueries({ queryKey: ["in-flight"] }),
  }));
}
