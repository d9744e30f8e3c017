import { useSearchParams } from "@solidjs/router";
import { createMemo } from "solid-js";
import type { DailyUsage } from "./daily-usage.ts";
import { useDailyUsageQuery } from "./queries.ts";

const dayChoices = ["7", "30", "90", "365"] as const;
type DayChoice = (typeof dayChoices)[number];

export const dayOptions = dayChoices.map((value) => ({ value, label: `${value} d` }));

export interface DailyUsageState {
  query: ReturnType<typeof useDailyUsageQuery>;
  /** Of the last good response; while another number of days loads or after it failed, of the one before. */
  shown: () => DailyUsage | undefined;
  shownDays: () => number;
  /** Server time; undefined without data. */
  fetchedAt: () => number | undefined;
  /** Whether the table shows the chosen days. */
  isCurrent: () => boolean;
  isLoading: () => boolean;
  days: () => DayChoice;
  perKey: () => boolean;
  setDays: (days: DayChoice) => void;
  setPerKey: (perKey: boolean) => void;
}

/** The usage of the days in the URL. */
export function useDailyUsage(): DailyUsageState {
  const [parameters, setParameters] = useSearchParams<{ days?: string; daily?: string }>();
  const days = (): DayChoice => dayChoices.find((choice) => choice === parameters.days) ?? "30";
  const query = useDailyUsageQuery(() => Number(days()));
  const data = createMemo<typeof query.data>((before) => query.data ?? before);
  const shownDays = (): number => data()?.days ?? Number(days());
  const isCurrent = (): boolean => data() !== undefined && shownDays() === Number(days());
  return {
    query,
    shown: () => data()?.byDay,
    shownDays,
    fetchedAt: () => data()?.fetchedAt,
    isCurrent,
    isLoading: () => !isCurrent() && !query.isError,
    days,
    perKey: () => parameters.daily === "key",
    setDays: (chosen) => setParameters({ days: chosen === "30" ? undefined : chosen }, { replace: true }),
    setPerKey: (perKey) => setParameters({ daily: perKey ? "key" : undefined }, { replace: true }),
  };
}
