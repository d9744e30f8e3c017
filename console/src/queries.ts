import {
  QueryClient,
  useMutation,
  type UseMutationResult,
  useQuery,
  useQueryClient,
  type UseQueryResult,
} from "@tanstack/solid-query";
import { $PROXY, createSignal, onCleanup } from "solid-js";
import { reconcile } from "solid-js/store";
import { api, ApiError, responseBody } from "./client.ts";
import { showToast } from "./lib/toasts.ts";

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      // An error response does not change on a retry. Without a response, try once more before the page reports it.
      retry: (failures, error) => failures < 1 && error instanceof ApiError && error.status === 0,
      retryDelay: 500,
      staleTime: 5000,
      // On loopback or a LAN, the browser's online state says nothing about the server.
      networkMode: "always",
    },
    mutations: { networkMode: "always" },
  },
});

/** The queries that the page refreshes by itself, also those of panels whose script loads later. */
export function usePanels(): { oldest: () => number | undefined; isFetching: () => boolean } {
  const cache = queryClient.getQueryCache();
  const [oldest, setOldest] = createSignal<number>();
  const [isFetching, setFetching] = createSignal(false);
  const read = (): void => {
    const panels = cache
      .findAll({ type: "active" })
      .filter(({ observers }) => observers.some(({ options }) => options.refetchInterval !== undefined));
    const times = panels.flatMap(({ state }) => (state.dataUpdatedAt === 0 ? [] : [state.dataUpdatedAt]));
    setOldest(times.length === 0 ? undefined : Math.min(...times));
    setFetching(panels.some(({ state }) => state.fetchStatus === "fetching"));
  };
  read();
  onCleanup(cache.subscribe(() => queueMicrotask(read)));
  return { oldest, isFetching };
}

export const refreshPanels = (): void => void queryClient.refetchQueries({ type: "active" });

export type QueryResult<Call extends (...parameters: never[]) => Promise<unknown>> = UseQueryResult<
  Awaited<ReturnType<Call>>
>;

/** Keeps the old data on the screen until the new data arrives. */
export const keepPreviousData = <T>(previous: T | undefined): T | undefined => previous;

/** The page shows an error until a query succeeds again, so a failed one is retried sooner. */
export const refetchSoonerAfterError =
  (everyMs: number) =>
  ({ state }: { state: { status: string } }): number =>
    state.status === "error" ? 15_000 : everyMs;

const getKeys = (keyId?: number) => responseBody(api.keys.get({ query: keyId === undefined ? {} : { key_id: keyId } }));
export type Key = Awaited<ReturnType<typeof getKeys>>[number];

const getPrices = () => responseBody(api.prices.get());
export type Prices = Awaited<ReturnType<typeof getPrices>>;

const getSettings = () => responseBody(api.settings.get());
export type Settings = Awaited<ReturnType<typeof getSettings>>;

// Polling stops in hidden tabs (`refetchIntervalInBackground` is off). `reconcile` keeps the rows that did not change,
// so that a refresh does not move the focus or close an open dialog.

/** The response that each list on the screen equals. */
const shownOf = new WeakMap<Key[], Key[]>();

/**
 * Like `reconcile: "id"`, which looks at all rows four times for each refresh: with 10,000 keys, the page stood still for a
 * second and a half. This looks at them once.
 * @param list of the screen, which is changed in place; undefined if there is none
 * @param response undefined while there is none, although the type does not say so
 */
function keepKeys(list: Key[] | undefined, response: Key[] | undefined): Key[] {
  if (response === undefined) return response as unknown as Key[];
  if (list !== undefined && shownOf.get(list) !== response) reconcile(response, { key: "id" })(list);
  const shown = list ?? structuredClone(response);
  shownOf.set(shown, response);
  // Solid looks into a list that is not its own.
  return (Reflect.get(shown, $PROXY) as Key[] | undefined) ?? shown;
}

export const fetchKeys = (): Promise<Key[]> => queryClient.fetchQuery({ queryKey: ["keys"], queryFn: () => getKeys() });

export const useKeysQuery = (enabled: () => boolean = () => true): QueryResult<typeof getKeys> =>
  useQuery(() => ({
    enabled: enabled(),
    queryKey: ["keys"],
    queryFn: () => getKeys(),
    refetchInterval: 15_000,
    reconcile: keepKeys,
  }));

/** So many come at first. Hardly anybody looks at more, and all of 10,000 are 400 kB. */
export const firstKeys = 500;
const etags = new WeakMap<Key[], string | null>();

/** What is shown already does not come again. */
async function getFirstKeys(): Promise<Key[]> {
  const before = queryClient.getQueryData<Key[]>(["keys", "first"]);
  const etag = before && etags.get(before);
  const call = api.keys.get({ query: { limit: firstKeys }, headers: etag ? { "if-none-match": etag } : {} });
  const response = await call.then((known) => known.response).catch(() => undefined);
  if (before !== undefined && response?.status === 304) return before;
  const keys = await responseBody(call);
  etags.set(keys, response?.headers.get("etag") ?? null);
  return keys;
}

/** The keys that were made first: all, if they are fewer than `firstKeys`. */
export const useFirstKeysQuery = (enabled: () => boolean): QueryResult<typeof getFirstKeys> =>
  useQuery(() => ({
    enabled: enabled(),
    queryKey: ["keys", "first"],
    queryFn: getFirstKeys,
    refetchInterval: 15_000,
    reconcile: keepKeys,
  }));

/** The keys as they were when the page was opened, to choose one by name. */
export const useKeyNamesQuery = (): QueryResult<typeof getKeys> =>
  useQuery(() => ({ queryKey: ["keys"], queryFn: () => getKeys(), staleTime: 5 * 60_000, reconcile: keepKeys }));

/** A list of one key, or of none, which refreshes at a fraction of the bytes. It begins with what the list of all had. */
export const useKeyQuery = (keyId: () => number): QueryResult<typeof getKeys> =>
  useQuery(() => ({
    queryKey: ["keys", keyId()],
    queryFn: () => getKeys(keyId()),
    refetchInterval: 15_000,
    reconcile: keepKeys,
    placeholderData: () => {
      const lists = queryClient.getQueriesData<Key[]>({ queryKey: ["keys"] });
      const known = lists.flatMap(([, keys = []]) => keys).find(({ id }) => id === keyId());
      return known && [known];
    },
  }));

const getTeams = async () => (await responseBody(api.teams.get())).teams;
export type Team = Awaited<ReturnType<typeof getTeams>>[number];

/** @param everyMs undefined: as they were when the page was opened, to know their names */
export const useTeamsQuery = (everyMs?: number): QueryResult<typeof getTeams> =>
  useQuery(() => ({
    queryKey: ["teams"],
    queryFn: getTeams,
    reconcile: "id",
    ...(everyMs !== undefined && { refetchInterval: everyMs }),
  }));

/** Whether there are teams: without any, nothing tells of them. */
export function useHasTeams(): () => boolean {
  const teams = useTeamsQuery();
  return () => (teams.data?.length ?? 0) > 0;
}

/** The API's most for one page. */
const maxUsers = 1000;
const getUsers = (query: { key?: number; team?: number }, limit: number) =>
  responseBody(api.users.get({ query: { ...query, limit } }));
export type User = Awaited<ReturnType<typeof getUsers>>["users"][number];

/** The users of a key or of a team, by id. */
export const useUsersQuery = (
  of: () => { key?: number; team?: number },
  everyMs: number,
): QueryResult<typeof getUsers> =>
  useQuery(() => ({
    queryKey: ["users", of()],
    queryFn: () => getUsers(of(), maxUsers),
    reconcile: "id",
    refetchInterval: everyMs,
  }));

/** Whether a key tells users apart: without any, nothing tells of them. */
export function useHasUsers(): () => boolean {
  const users = useQuery(() => ({ queryKey: ["users", "any"], queryFn: () => getUsers({}, 1) }));
  return () => (users.data?.users.length ?? 0) > 0;
}

export const usePricesQuery = (): QueryResult<typeof getPrices> =>
  useQuery(() => ({ queryKey: ["prices"], queryFn: getPrices }));

/** Loads the prices anew for a form, although the cache has some. */
export const usePricesToEditQuery = (): QueryResult<typeof getPrices> =>
  useQuery(() => ({ queryKey: ["prices"], queryFn: getPrices, refetchOnMount: "always" }));

export const useSettingsQuery = (): QueryResult<typeof getSettings> =>
  useQuery(() => ({ queryKey: ["settings"], queryFn: getSettings }));

const getClientRules = () => responseBody(api["client-rules"].get({ query: { hours: 24 } }));
export type ClientRules = Awaited<ReturnType<typeof getClientRules>>;

/** Which client rules would have helped whom in the last day. */
export const useClientRulesQuery = (enabled: () => boolean = () => true): QueryResult<typeof getClientRules> =>
  useQuery(() => ({
    enabled: enabled(),
    queryKey: ["client-rules"],
    queryFn: getClientRules,
    refetchInterval: refetchSoonerAfterError(60_000),
  }));

const getStates = () => responseBody(api.states.get());
export type States = Awaited<ReturnType<typeof getStates>>;

/** What is wrong, on every page. */
export const useStatesQuery = (enabled: () => boolean = () => true): QueryResult<typeof getStates> =>
  useQuery(() => ({ enabled: enabled(), queryKey: ["states"], queryFn: getStates, refetchInterval: 5000 }));

interface Silence {
  kind: string;
  instance?: string;
  until: string;
  why: string;
}

export const useSilence = () =>
  useChange((silence: Silence) => responseBody(api.states.silence.post(silence)), {
    failed: () => "It was not silenced",
    refreshes: ["states"],
  });

interface ChangeOptions<Input, Output> {
  /** What a message says once it is done. */
  done?: (input: Input, output: Output) => string;
  /** What it says, before the reason, if it failed. Without it, who asked for the change tells of the failure. */
  failed?: (input: Input) => string;
  /** The queries that it changes; by default all. */
  refreshes?: readonly string[];
  /** Whether what comes back is a secret, which does not stay in memory. */
  isSecret?: boolean;
}

/** A change of what the server has. It is done once the queries have what it changed. */
export function useChange<Input, Output>(
  act: (input: Input) => Promise<Output>,
  { done, failed, refreshes, isSecret }: ChangeOptions<Input, Output> = {},
): UseMutationResult<Output, Error, Input> {
  const queries = useQueryClient();
  return useMutation(() => ({
    mutationFn: act,
    onSuccess: (output, input) => done && showToast(done(input, output)),
    onError: (error, input) => failed && showToast(`${failed(input)}: ${error.message}`, "error"),
    onSettled: () =>
      Promise.all(
        (refreshes ?? [undefined]).map((name) => queries.invalidateQueries(name ? { queryKey: [name] } : {})),
      ),
    ...(isSecret && { gcTime: 0 }),
  }));
}
