import { useUsageByDayQuery } from "../queries.ts";
import type { UsageSums } from "./usage-sums.ts";
import type { UsageFilters } from "./use-usage-filters.ts";

/** The sums over the keys that the filters leave. */
export interface UsageFigures {
  /** Undefined while they load. */
  today: () => UsageSums | undefined;
  /** Of the keys that still exist; undefined while they load. */
  allTime: () => UsageSums | undefined;
  failed: () => boolean;
  /** Whether they are of some keys only. */
  isFiltered: () => boolean;
  query: ReturnType<typeof useUsageByDayQuery>;
}

const none: UsageSums = { requests: 0, input: 0, output: 0 };

export function useUsageFigures(filters: UsageFilters): UsageFigures {
  // The fewest days that the API has.
  const query = useUsageByDayQuery(() => 7, filters.selection, 15_000);
  const selected = (): { search: string; key: string | undefined; hiddenIds: readonly number[] } =>
    query.data?.selection ?? filters.selection();
  return {
    today: () => query.data && (query.data.lines.get(query.data.today) ?? none),
    allTime: () => query.data?.allTime,
    failed: () => query.isError,
    isFiltered: () => selected().search !== "" || selected().key !== undefined || selected().hiddenIds.length > 0,
    query,
  };
}
