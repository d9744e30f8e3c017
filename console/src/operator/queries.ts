import { type InfiniteData, useInfiniteQuery, type UseInfiniteQueryResult, useQuery } from "@tanstack/solid-query";
import { api, responseBody } from "../client.ts";
import { serverNow } from "../lib/server-clock.ts";
import { type Prices, type QueryResult, useChange } from "../queries.ts";

/** The names that the backend got since yesterday in Seoul, also in requests that it refused. One bucket for each day is short. */
const getAskedModels = async () =>
  (await responseBody(api.latency.get({ query: { hours: 24, bucket_minutes: 1440, by: "model" } }))).totals;

export const useAskedModelsQuery = (): QueryResult<typeof getAskedModels> =>
  useQuery(() => ({ queryKey: ["asked-models"], queryFn: getAskedModels }));

/** The programs that sent requests in the last 24 hours. */
const getPrograms = async () => {
  const since = new Date(serverNow() - 24 * 3600 * 1000).toISOString();
  return (await responseBody(api.requests.groups.get({ query: { by: "program", since, limit: 200 } }))).rows;
};

export const useProgramsQuery = (): QueryResult<typeof getPrograms> =>
  useQuery(() => ({ queryKey: ["programs"], queryFn: getPrograms }));

const getSessions = () => responseBody(api.sessions.get());
export type ConsoleSession = Awaited<ReturnType<typeof getSessions>>[number];

export const useSavePrices = () =>
  useChange((prices: Prices): Promise<Prices> => responseBody(api.prices.put(prices)), {
    done: () => "The prices were saved",
    refreshes: ["prices", "usage"],
  });

export const useSessionsQuery = (): QueryResult<typeof getSessions> =>
  useQuery(() => ({ queryKey: ["sessions"], queryFn: getSessions, refetchInterval: 30_000, reconcile: "id" }));

/** Of undefined: all but the current one. */
export const useEndSession = () =>
  useChange(
    async (id: string | undefined): Promise<unknown> =>
      id === undefined ? responseBody(api.sessions.delete()) : responseBody(api.sessions({ id }).delete()),
    {
      done: (id) => (id === undefined ? "All other sessions were ended" : "The session was ended"),
      failed: () => "Not ended",
      refreshes: ["sessions"],
    },
  );

const getTokens = () => responseBody(api.tokens.get());
export type ApiToken = Awaited<ReturnType<typeof getTokens>>[number];

export const useTokensQuery = (): QueryResult<typeof getTokens> =>
  useQuery(() => ({ queryKey: ["tokens"], queryFn: getTokens, refetchInterval: 30_000, reconcile: "id" }));

export const useCreateToken = () =>
  useChange((token: Pick<ApiToken, "name" | "role" | "expires_at">) => responseBody(api.tokens.post(token)), {
    refreshes: ["tokens"],
    isSecret: true,
  });

export const useDeleteToken = () =>
  useChange(async ({ id }: ApiToken): Promise<unknown> => responseBody(api.tokens({ id: String(id) }).delete()), {
    done: ({ name }) => `The token “${name}” was deleted`,
    failed: () => "Not deleted",
    refreshes: ["tokens"],
  });

export type AuditFilter = Partial<Record<"actor" | "action" | "target", string>>;

const getChanges = (filter: AuditFilter, cursor: string | undefined) =>
  responseBody(api.audit.get({ query: { ...filter, format: "json", ...(cursor !== undefined && { cursor }) } }));
type ChangesBody = Awaited<ReturnType<typeof getChanges>>;
export type RecordedChange = ChangesBody["rows"][number];

export const useChangesQuery = (filter: () => AuditFilter): UseInfiniteQueryResult<InfiniteData<ChangesBody>> =>
  useInfiniteQuery(() => ({
    queryKey: ["changes", filter()],
    queryFn: ({ pageParam }: { pageParam: string | undefined }) => getChanges(filter(), pageParam),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last: ChangesBody) => last.next_cursor ?? undefined,
  }));

export const useChangePassword = () =>
  useChange(
    ({ current, next }: { current: string; next: string }) =>
      responseBody(api.password.post({ current_password: current, new_password: next })),
    { done: () => "The password was changed, and all other sessions were ended", refreshes: ["sessions"] },
  );

export const useTestNotice = () =>
  useChange<void, unknown>(() => responseBody(api.notices.test.post()), {
    done: () => "The notice was accepted",
    failed: () => "The notice was not accepted",
    refreshes: [],
  });
