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
import type { QueryResult } from "./queries.ts";
import type { RequestFilterQuery } from "./request-filters.ts";
import { showToast } from "./toasts.ts";

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

/** One request by its id, for a link to a request that the table does not hold. */
export const useRequestQuery = (requestId: () => string | undefined): QueryResult<typeof findRequest> =>
  useQuery(() => ({
    enabled: requestId() !== undefined,
    queryKey: ["request", requestId()],
    queryFn: () => findRequest(requestId() ?? ""),
  }));

const findRequest = async (requestId: string): Promise<LoggedRequest | null> =>
  (await getRequests({ request_id: requestId })).requests[0] ?? null;

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
