import { useSearchParams } from "@solidjs/router";
import { useDailyUsageQuery } from "./queries.ts";

const dayChoices = ["7", "30", "90", "365"] as const;
type DayChoice = (typeof dayChoices)[number];

export const dayOptions = dayChoices.map((value) => ({ value, label: `${value} d` }));

export interface DailyUsageState {
  query: ReturnType<typeof useDailyUsageQuery>;
  days: () => DayChoice;
  perKey: () => boolean;
  setDays: (days: DayChoice) => void;
  setPerKey: (perKey: boolean) => void;
}

/** The usage of the days in the URL. */
export function useDailyUsage(): DailyUsageState {
  const [parameters, setParameters] = useSearchParams<{ days?: string; daily?: string }>();
  const days = (): DayChoice => dayChoices.find((choice) => choice === parameters.days) ?? "30";
  return {
    query: useDailyUsageQuery(() => Number(days())),
    days,
    perKey: () => parameters.daily === "key",
    setDays: (chosen) => setParameters({ days: chosen === "30" ? undefined : chosen }, { replace: true }),
    setPerKey: (perKey) => setParameters({ daily: perKey ? "key" : undefined }, { replace: true }),
  };
}
