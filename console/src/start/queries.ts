import { useMutation, type UseMutationResult, useQuery } from "@tanstack/solid-query";
import { api, responseBody } from "../client.ts";
import type { QueryResult } from "../queries.ts";

const getOverview = () => responseBody(api.overview.get());
export type Overview = Awaited<ReturnType<typeof getOverview>>;

export const useOverviewQuery = (): QueryResult<typeof getOverview> =>
  useQuery(() => ({
    queryKey: ["overview"],
    queryFn: getOverview,
    refetchInterval: 5000,
    reconcile: "gpu_id",
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
