import { useQuery } from "@tanstack/solid-query";
import { api, responseBody } from "../client.ts";
import { dayMs, seoulDay } from "../lib/seoul-time.ts";
import { serverNow } from "../lib/server-clock.ts";
import { keepPreviousData, type QueryResult, refetchSoonerAfterError } from "../queries.ts";
import { type KeySelection, selectionParameters } from "./usage-buckets.ts";

/** Seoul's days, both included. */
export const lastDays = (days: number): { from: string; to: string } => ({
  from: seoulDay(serverNow() - (days - 1) * dayMs),
  to: seoulDay(serverNow()),
});

export type CostGroup = "day" | "key" | "team" | "user" | "model" | "tag" | "owner" | "key_model" | "day_key";

/** Usage of the last days, and what it cost. */
export interface CostsRequest {
  /** With today. */
  days: number;
  selection: KeySelection;
  /** Only what was used while its key was in the team. */
  teamId?: number | undefined;
  by: CostGroup;
}

/** The API's most for one page. */
const maxPageSize = 2000;

const fetchCosts = ({ days, by, selection, teamId }: CostsRequest, limit: number, cursor: string | undefined) =>
  responseBody(
    api.usage.costs.get({
      query: {
        ...lastDays(days),
        by,
        ...selectionParameters(selection),
        ...(teamId !== undefined && { team_id: teamId }),
        limit,
        ...(cursor !== undefined && { cursor }),
      },
    }),
  );
export type CostRow = Awaited<ReturnType<typeof fetchCosts>>["rows"][number];

interface CostsPage {
  rows: CostRow[];
  request: CostsRequest;
  fetchedAt: number;
}

export interface Costs extends CostsPage {
  /** The last day. */
  to: string;
  currency: string | null;
}

/** All pages. */
export async function getCosts(request: CostsRequest): Promise<Costs> {
  const rows: CostRow[] = [];
  for (let cursor: string | undefined; ;) {
    const page = await fetchCosts(request, maxPageSize, cursor);
    rows.push(...page.rows);
    const { to, currency } = page;
    if (page.next_cursor === null) return { rows, to, currency, request, fetchedAt: serverNow() };
    cursor = page.next_cursor;
  }
}

const pageSize = 200;

/** @param cursor of the page before; by default, the first page */
export async function getCostPage(
  request: CostsRequest,
  cursor?: string,
): Promise<CostsPage & { next: string | undefined }> {
  const { rows, next_cursor } = await fetchCosts(request, pageSize, cursor);
  return { rows, next: next_cursor ?? undefined, request, fetchedAt: serverNow() };
}

export const useCostsQuery = (
  request: () => CostsRequest,
  { enabled = () => true, everyMs = 60_000 }: { enabled?: () => boolean; everyMs?: number } = {},
): QueryResult<typeof getCosts> =>
  useQuery(() => ({
    queryKey: ["usage", "costs", request()],
    queryFn: () => getCosts(request()),
    enabled: enabled(),
    refetchInterval: refetchSoonerAfterError(everyMs),
    placeholderData: keepPreviousData,
  }));

/** The first page. */
export const useCostPageQuery = (
  request: () => CostsRequest,
  enabled: () => boolean,
): QueryResult<typeof getCostPage> =>
  useQuery(() => ({
    enabled: enabled(),
    queryKey: ["usage", "cost-page", request()],
    queryFn: () => getCostPage(request()),
    refetchInterval: refetchSoonerAfterError(60_000),
    placeholderData: keepPreviousData,
  }));
