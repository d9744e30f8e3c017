import { useQuery } from "@tanstack/solid-query";
import { api, responseBody } from "../client.ts";
import type { Cost } from "../lib/money.ts";
import { dayMs, seoulDay } from "../lib/seoul-time.ts";
import { serverNow } from "../lib/server-clock.ts";
import { keepPreviousData, type QueryResult, refetchSoonerAfterError } from "../queries.ts";
import { lineId } from "./daily-usage.ts";
import { type KeySelection, selectionParameters } from "./usage-buckets.ts";

/** Seoul's days, both included. */
interface DaySpan {
  from: string;
  to: string;
}

export const lastDays = (days: number): DaySpan => ({
  from: seoulDay(serverNow() - (days - 1) * dayMs),
  to: seoulDay(serverNow()),
});

export type CostGroup = "day" | "key" | "model" | "tag" | "owner" | "key_model" | "day_key";

const getCostPage = (span: DaySpan, by: CostGroup, selection: KeySelection, cursor: string | undefined) =>
  responseBody(
    api.usage.costs.get({
      query: { ...span, by, ...selectionParameters(selection), limit: 2000, ...(cursor !== undefined && { cursor }) },
    }),
  );
type CostPage = Awaited<ReturnType<typeof getCostPage>>;
export type CostRow = CostPage["rows"][number];

/** All pages. */
async function readCosts(
  span: DaySpan,
  by: CostGroup,
  selection: KeySelection,
): Promise<{ rows: CostRow[]; currency: string | null }> {
  const rows: CostRow[] = [];
  for (let cursor: string | undefined; ;) {
    const page = await getCostPage(span, by, selection, cursor);
    rows.push(...page.rows);
    if (page.next_cursor === null) return { rows, currency: page.currency };
    cursor = page.next_cursor;
  }
}

/** What each key cost on each day, by `lineId`. */
export async function getLineCosts(span: DaySpan, selection: KeySelection): Promise<Map<string, Cost>> {
  const { rows } = await readCosts(span, "day_key", selection);
  return new Map(rows.map((row) => [lineId(row.date ?? "", row.key_id ?? 0), row]));
}

export interface CostsRequest {
  /** With today. */
  days: number;
  selection: KeySelection;
  by: CostGroup;
}

async function getCosts(request: CostsRequest) {
  const { rows, currency } = await readCosts(lastDays(request.days), request.by, request.selection);
  return { rows, currency, request, fetchedAt: serverNow() };
}
export type Costs = Awaited<ReturnType<typeof getCosts>>;

/** What the last days cost, with today. */
export const useCostsQuery = (
  request: () => CostsRequest,
  enabled = (): boolean => true,
): QueryResult<typeof getCosts> =>
  useQuery(() => ({
    queryKey: ["usage", "costs", request()],
    queryFn: () => getCosts(request()),
    enabled: enabled(),
    refetchInterval: refetchSoonerAfterError(60_000),
    placeholderData: keepPreviousData,
  }));
