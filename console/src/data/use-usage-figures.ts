import { createMemo } from "solid-js";
import { type DailyUsageRow, sumsOfRow } from "./daily-usage.ts";
import { type Key, useDailyUsageQuery, useKeysQuery, useUsageSummaryQuery, useUsageTotalQuery } from "./queries.ts";
import { addSums, type UsageSums } from "./usage-history.ts";
import type { UsageFilters } from "./use-usage-filters.ts";

/** The sums over the keys that the filters leave. */
export interface UsageFigures {
  /** Undefined while they load. */
  today: () => UsageSums | undefined;
  /** Of the keys that still exist; undefined while they load. */
  allTime: () => UsageSums | undefined;
  /** Whether today's sums could not be loaded. */
  failed: () => boolean;
  /** Whether they are of some keys only. */
  isFiltered: () => boolean;
  queries: {
    today: () => ReturnType<typeof useUsageSummaryQuery> | ReturnType<typeof useDailyUsageQuery>;
    allTime: () => ReturnType<typeof useUsageTotalQuery> | ReturnType<typeof useKeysQuery>;
  };
}

/** The API sums over all keys; sums over some are made of the daily rows and the list of keys. */
export function useUsageFigures(filters: UsageFilters): UsageFigures {
  const isFiltered = (): boolean => filters.isFiltered() || filters.hiddenIds().size > 0;
  const shows = (id: number, name: string): boolean => filters.matches(id, name) && !filters.hiddenIds().has(id);
  const summary = useUsageSummaryQuery();
  const total = useUsageTotalQuery();
  const daily = useDailyUsageQuery(() => 7, isFiltered);
  const keys = useKeysQuery();

  const todayFiltered = createMemo((): UsageSums | undefined => {
    const [byDay, date] = [daily.data?.byDay, summary.data?.date];
    if (byDay === undefined || date === undefined) return undefined;
    const rows: readonly DailyUsageRow[] = byDay.get(date) ?? [];
    return addSums(rows.filter((row) => shows(row.key_id, row.key_name)).map(sumsOfRow));
  });
  const allTimeFiltered = createMemo(
    () => keys.data && addSums(keys.data.filter(({ id, name }) => shows(id, name)).map(sumsOfKey)),
  );
  return {
    today: () => (isFiltered() ? todayFiltered() : summary.data && sumsOf(summary.data)),
    allTime: () => (isFiltered() ? allTimeFiltered() : total.data && sumsOf(total.data)),
    failed: () => summary.isError || (isFiltered() && daily.isError),
    isFiltered,
    queries: {
      today: () => (isFiltered() && !summary.isError ? daily : summary),
      allTime: () => (isFiltered() ? keys : total),
    },
  };
}

const sumsOf = (body: { request_count: number; input_tokens: number; output_tokens: number }): UsageSums => ({
  requests: body.request_count,
  input: body.input_tokens,
  output: body.output_tokens,
});

const sumsOfKey = (key: Key): UsageSums => ({
  requests: key.total_request_count,
  input: key.total_input_tokens,
  output: key.total_output_tokens,
});
