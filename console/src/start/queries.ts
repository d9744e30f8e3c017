import { useMutation, type UseMutationResult, useQuery } from "@tanstack/solid-query";
import { api, requestWithKey, responseBody } from "../client.ts";
import { type QueryResult, refetchSoonerAfterError } from "../queries.ts";

const getOverview = () => responseBody(api.overview.get());
export type Overview = Awaited<ReturnType<typeof getOverview>>;

export const useOverviewQuery = (): QueryResult<typeof getOverview> =>
  useQuery(() => ({
    queryKey: ["overview"],
    queryFn: getOverview,
    refetchInterval: 5000,
  }));

/** The last hundred; who logged in and out is no change of the server. */
const getLastChanges = async () =>
  (await responseBody(api.audit.get({ query: { format: "json" } }))).rows.filter(
    ({ action }) => !action.startsWith("session."),
  );
export type LastChange = Awaited<ReturnType<typeof getLastChanges>>[number];

export const useLastChangesQuery = (): QueryResult<typeof getLastChanges> =>
  useQuery(() => ({
    queryKey: ["last-changes"],
    queryFn: getLastChanges,
    refetchInterval: refetchSoonerAfterError(60_000),
  }));

interface Explained {
  path: string;
  body: string;
  /** The client that would send it. */
  user_agent?: string;
}

const explain = (request: Explained) => responseBody(api.explain.post(request));
export type Explanation = Awaited<ReturnType<typeof explain>>;

export const useExplain = (): UseMutationResult<Explanation, Error, Explained> =>
  useMutation(() => ({ mutationFn: explain }));

const getServedModels = async (): Promise<string[]> => [
  ...new Set((await responseBody(api.backends.get())).backends.flatMap(({ models }) => models)),
];

/** The models of all backends that are known. */
export const useServedModelsQuery = (): QueryResult<typeof getServedModels> =>
  useQuery(() => ({ queryKey: ["model-names"], queryFn: getServedModels }));

/** As Tollgate lists a model, or vLLM or llama.cpp does in front of which there is no file of models. */
export interface ListedModel {
  id: string;
  kind?: string;
  context_length?: number;
  max_model_len?: number;
  meta?: { n_ctx?: number } | null;
  max_output_tokens?: number;
}

const getListedModels = async (key: string): Promise<ListedModel[]> =>
  (await requestWithKey<{ data: ListedModel[] }>("/v1/models", key)).data;

/** The models that a key may use. @param key empty: none are asked for */
export const useListedModelsQuery = (key: () => string): QueryResult<typeof getListedModels> =>
  useQuery(() => ({
    enabled: key() !== "",
    queryKey: ["listed-models", key()],
    queryFn: () => getListedModels(key()),
    retry: false,
    // A key stays in memory no longer than the page that shows it.
    gcTime: 0,
  }));
