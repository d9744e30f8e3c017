import { useMutation, type UseMutationResult, useQuery } from "@tanstack/solid-query";
import { api, responseBody } from "../client.ts";
import type { QueryResult } from "../queries.ts";

const getOverview = () => responseBody(api.overview.get());
export type Overview = Awaited<ReturnType<typeof getOverview>>;

export const useOverviewQuery = (enabled: () => boolean = () => true): QueryResult<typeof getOverview> =>
  useQuery(() => ({
    enabled: enabled(),
    queryKey: ["overview"],
    queryFn: getOverview,
    refetchInterval: 5000,
    reconcile: "gpu_id",
  }));

const explain = ({ path, body }: { path: string; body: string }) => responseBody(api.explain.post({ path, body }));
export type Explanation = Awaited<ReturnType<typeof explain>>;

export const useExplain = (): UseMutationResult<Explanation, Error, { path: string; body: string }> =>
  useMutation(() => ({ mutationFn: explain }));
